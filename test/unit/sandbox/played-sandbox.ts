import { mkdtemp, readdir, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { readEnvironment } from "../../../src/lib/env.js";
import { createSandbox } from "../../../src/sandbox/create-sandbox.js";
import type { OpenedSandbox } from "../../../src/sandbox/open-sandbox.js";
import { type Sandbox, sandboxFrom } from "../../../src/sandbox/sandbox.js";
import type { SandboxOptions } from "../../../src/sandbox/sandbox-options.js";
import { PlayedEngine } from "./played-engine.js";

/** An engine that the test plays, and how sandboxes on it are opened. Nothing is left on disk when the test has ended. */
export async function playedPlace() {
  const brigHome = await mkdtemp(join(tmpdir(), "brig-played-"));
  onTestFinished(async () => await rm(brigHome, { recursive: true, force: true }));
  const engine = new PlayedEngine();
  const environment = readEnvironment({ HOME: "/home/alice", BRIG_HOME: brigHome });
  const warnings: Error[] = [];
  const open = async (options: SandboxOptions = {}): Promise<OpenedSandbox> =>
    await createSandbox(
      {
        workspaceKind: "none",
        onWarning: (warning) => warnings.push(warning),
        ...options,
        engine: engine.asEngine,
      },
      { environment, toolboxVolume: "toolbox" },
    );
  const sandbox = async (options: SandboxOptions = {}): Promise<Sandbox> => sandboxFrom(await open(options));
  return { engine, environment, brigHome, warnings, open, sandbox };
}

/** A directory in which every protected name is absent, so that placeholders are made in it. */
export async function emptyWorkspace(): Promise<string> {
  const path = await realpath(await mkdtemp(join(tmpdir(), "brig-workspace-")));
  onTestFinished(async () => await rm(path, { recursive: true, force: true }));
  return path;
}

/** The names of the files that say what a killed session would leave. */
export async function recordNames(brigHome: string): Promise<string[]> {
  return await readdir(join(brigHome, "sandboxes")).catch(() => []);
}

/** What the promise rejects with; null if it resolves. */
export async function failure(promise: Promise<unknown>): Promise<unknown> {
  return await promise.then(
    () => null,
    (error: unknown) => error,
  );
}
