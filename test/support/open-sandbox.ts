import type { RunnerLink } from "../../src/sandbox/channel/runner-link.js";
import { createSandbox, type Surroundings } from "../../src/sandbox/create-sandbox.js";
import type { Engine } from "../../src/sandbox/docker/engine-types.js";
import { type Sandbox, sandboxFrom } from "../../src/sandbox/sandbox.js";
import type { SandboxOptions } from "../../src/sandbox/sandbox-options.js";

/** A sandbox, with its stream to the runner and its engine, for tests that break the one or look at the other. */
export type BreakableSandbox = Sandbox & { readonly link: RunnerLink; readonly engine: Engine };

/** What `Sandbox.create` takes, and what it leaves to this process. */
export type TestSandboxOptions = Omit<SandboxOptions, "engine"> &
  Surroundings & { engine?: Engine | Promise<Engine> | undefined };

export async function openBreakable({
  environment,
  toolboxVolume,
  resolve,
  ...options
}: TestSandboxOptions = {}): Promise<BreakableSandbox> {
  const opened = await createSandbox(options, { environment, toolboxVolume, resolve });
  // Its `engine` is the whole engine already; only its public type has less.
  return Object.assign(sandboxFrom(opened), { link: opened.link }) as BreakableSandbox;
}
