import { realpath } from "node:fs/promises";
import { resolve } from "node:path";
import type { SessionSetting } from "../agent/prompt.js";
import type { Config } from "../config/config-schema.js";
import { commandVariables } from "../config/shell-environment.js";
import { loadPolicy } from "../policy/load-policy.js";
import { parseNetwork } from "../policy/network.js";
import { DEFAULT_MODE } from "../policy/policy.js";
import type { SandboxOptions } from "../sandbox/open-sandbox.js";
import type { Sandbox } from "../sandbox/sandbox.js";
import type { CliContext } from "./context.js";
import { write } from "./render.js";
import { commandDirectory, keptNote, type SandboxFlags, sandboxOptions } from "./sandbox-options.js";

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

/** Of the same workspace. One that holds nothing back never outlives its session, not even with `--keep`. */
export function withFullAccess(options: SandboxOptions): SandboxOptions {
  return { ...options, mode: "danger-full-access", policyFile: undefined, network: undefined, keep: false };
}

/** What the model is told before there is a sandbox to ask. */
export async function describeSetting(
  options: SandboxOptions,
  flags: SandboxFlags,
  { environment }: CliContext,
): Promise<SessionSetting> {
  const loaded = await loadPolicy(options.policyFile ?? options.mode ?? DEFAULT_MODE);
  const wanted = options.network === undefined ? null : parseNetwork(options.network);
  const takesRoots = loaded.policy.overrides.writableRoots;
  return {
    cwd:
      options.workspace === undefined
        ? (commandDirectory(flags) ?? "/")
        : await physicalPath(options.workspace),
    sandboxMode: loaded.name,
    network: wanted?.kind === "parsed" ? wanted.network : loaded.policy.network,
    writableRoots: [...(options.addDirs ?? []), ...(takesRoots ? (options.writableRoots ?? []) : [])],
    shell: "bash",
    timezone: environment.timezone,
  };
}

/** A workspace that is not there is the sandbox's to complain about. */
async function physicalPath(path: string): Promise<string> {
  return await realpath(path).catch(() => path);
}

/** Says on stderr what `--keep` keeps. */
export async function openConfiguredSandbox(
  options: SandboxOptions,
  { stderr }: CliContext,
): Promise<Sandbox> {
  const { Sandbox } = await import("../sandbox/sandbox.js");
  const sandbox = await Sandbox.create(options);
  if (options.keep === true) await write(stderr, keptNote(sandbox));
  return sandbox;
}
