import { currentDirectory } from "../config/current-directory.js";
import { type Environment, readEnvironment } from "../config/env.js";
import { connectEngine } from "../docker/connect.js";
import type { Engine, EngineConnection } from "../docker/engine-types.js";
import { BrigError } from "../errors.js";
import { type OpenedSandbox, openSandbox } from "./open-sandbox.js";
import type { SandboxOptions } from "./sandbox-options.js";
import { resolveSettings } from "./settings/resolve-settings.js";

/** What a sandbox is opened with besides its options. The package does not export it: the command line and tests choose these. */
export interface Surroundings {
  /** Default: that of this process. */
  environment?: Environment | undefined;
  /** A volume to mount at /.brig instead of this version's toolbox, with another build of the runner. */
  toolboxVolume?: string | undefined;
}

/** Opens a sandbox. Only here does the library read the process's environment and current directory. */
export async function createSandbox(
  options: SandboxOptions,
  surroundings: Surroundings = {},
): Promise<OpenedSandbox> {
  options.signal?.throwIfAborted();
  const { toolboxVolume, environment = readEnvironment() } = surroundings;
  const hasWorkspace = (options.workspaceKind ?? "bind") === "bind";
  const workspace = hasWorkspace ? (options.workspace ?? currentDirectory(process)) : null;
  const engine =
    options.engine === undefined ? connectEngine({ env: environment }) : engineOf(options.engine);
  return await openSandbox(resolveSettings({ ...options, workspace, environment }), {
    ...options,
    engine,
    toolboxVolume,
  });
}

/** Anything with an `endpoint` fits the public type; only what brig itself connected to can start containers. */
async function engineOf(connection: EngineConnection | Promise<EngineConnection>): Promise<Engine> {
  const engine = await connection;
  if ("createContainer" in engine) return engine as Engine;
  throw new BrigError("the option engine is not a connection of brig's", {
    code: "usage.invalid",
    hint: "pass the engine property of another sandbox, or leave it out and set DOCKER_HOST",
  });
}
