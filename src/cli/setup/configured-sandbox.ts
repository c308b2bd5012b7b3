import { realpath } from "node:fs/promises";
import { resolve } from "node:path";
import type { Config } from "../../config/config-schema.js";
import { commandVariables } from "../../config/shell-environment.js";
import { connectEngine } from "../../docker/connect.js";
import { glanceAtEngine } from "../../docker/glance.js";
import { DEFAULT_MODE } from "../../policy/modes.js";
import { checkSandboxOptions } from "../../sandbox/check-options.js";
import { DEFAULT_IMAGE, missingImage } from "../../sandbox/plan/missing-image.js";
import { refuseUnknownRuntime } from "../../sandbox/plan/unknown-runtime.js";
import type { Sandbox } from "../../sandbox/sandbox.js";
import type { SandboxOptions } from "../../sandbox/sandbox-options.js";
import type { SessionSetting } from "../../session/setting.js";
import type { CliContext } from "../context.js";
import { say } from "../render.js";
import { commandDirectory, keptNote, type SandboxFlags, sandboxOptions } from "./sandbox-options.js";

/** An engine that takes longer to say whether it has an image is not waited for. */
const GLANCE_MS = 1000;

/** The flags, and the configuration where they say nothing. */
export function configuredSandbox(flags: SandboxFlags, config: Config, context: CliContext): SandboxOptions {
  const options = sandboxOptions(flags, context);
  // A mode on the command line stands against a policy file of the configuration.
  const configuredPolicy = flags.sandbox === undefined ? config.policy : undefined;
  const policyFile = options.policyFile ?? configuredPolicy;
  const mode = policyFile === undefined ? config.sandbox_mode : undefined;
  const workspaceWrite = config.sandbox_workspace_write;
  const isWorkspaceWrite = policyFile === undefined && (mode ?? DEFAULT_MODE) === "workspace-write";
  const opensNetwork = isWorkspaceWrite && workspaceWrite.network_access;
  return {
    ...options,
    mode,
    policyFile,
    image: config.container_image,
    runtime: config.runtime,
    network: config.network ?? (opensNetwork ? "full" : undefined),
    writableRoots: workspaceWrite.writable_roots.map((root) => resolve(context.cwd, root)),
    leaseSeconds: config.lease_seconds,
    env: { ...commandVariables(config), ...options.env },
  };
}

/** Of the same workspace, where it holds what the first sandbox does. It never outlives its session, not even with `--keep`. */
export function withFullAccess(options: SandboxOptions): SandboxOptions {
  return {
    ...options,
    mode: "danger-full-access",
    policyFile: undefined,
    protectsLike: options.policyFile ?? options.mode ?? DEFAULT_MODE,
    network: undefined,
    keep: false,
  };
}

/** What the model is told before there is a sandbox to ask. Errors: whatever can be seen to keep the sandbox from starting. */
export async function describeSetting(
  options: SandboxOptions,
  flags: SandboxFlags,
  { environment }: CliContext,
): Promise<SessionSetting> {
  const loaded = await checkSandboxOptions(options);
  const takesRoots = loaded.policy.overrides.writableRoots;
  return {
    cwd:
      options.workspace === undefined ? (commandDirectory(flags) ?? "/") : await realpath(options.workspace),
    sandboxMode: loaded.name,
    network: loaded.policy.network,
    writableRoots: [...(options.addDirs ?? []), ...(takesRoots ? (options.writableRoots ?? []) : [])],
    shell: "bash",
    timezone: environment.timezone,
  };
}

/**
 * Asks the engine whether it has the image and the runtime, before anybody pays for a request whose calls could not run. Errors:
 * `image.missing`, `usage.invalid`, `engine.unreachable`.
 */
export async function checkEngine(
  { image = DEFAULT_IMAGE, runtime }: SandboxOptions,
  { environment: env }: CliContext,
): Promise<void> {
  const needsRuntimes = runtime !== undefined;
  const glance = await glanceAtEngine({ env, image, needsRuntimes, withinMs: GLANCE_MS });
  // Whatever connects in earnest says best what is wrong.
  if (glance.kind === "silent") await connectEngine({ env });
  if (glance.kind !== "answered") return;
  refuseUnknownRuntime(runtime, glance);
  if (!glance.hasImage) throw missingImage(image);
}

/** Says on stderr what `--keep` keeps. */
export async function openConfiguredSandbox(
  options: SandboxOptions,
  { stderr }: CliContext,
): Promise<Sandbox> {
  const { Sandbox } = await import("../../sandbox/sandbox.js");
  const sandbox = await Sandbox.create(options);
  if (options.keep === true) await say(stderr, keptNote(sandbox));
  return sandbox;
}
