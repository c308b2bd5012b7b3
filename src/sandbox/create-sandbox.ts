import { currentDirectory } from "../config/current-directory.js";
import { readEnvironment } from "../config/env.js";
import { connectEngine } from "../docker/connect.js";
import { type OpenedSandbox, openSandbox } from "./open-sandbox.js";
import type { SandboxOptions } from "./sandbox-options.js";
import { resolveSettings } from "./settings/resolve-settings.js";

/** What only tests choose about a sandbox. */
export interface TestChoice {
  /** A volume to mount at /.brig instead of this version's toolbox, with another build of the runner. */
  toolboxVolume?: string | undefined;
}

/** Opens a sandbox. Only here does the library read the process's environment and current directory. */
export async function createSandbox(
  options: SandboxOptions,
  { toolboxVolume }: TestChoice = {},
): Promise<OpenedSandbox> {
  options.signal?.throwIfAborted();
  const environment = options.environment ?? readEnvironment();
  const hasWorkspace = (options.workspaceKind ?? "bind") === "bind";
  const workspace = hasWorkspace ? (options.workspace ?? currentDirectory(process)) : null;
  const engine = options.engine ?? connectEngine({ env: environment });
  return await openSandbox(resolveSettings({ ...options, workspace, environment }), {
    ...options,
    engine,
    toolboxVolume,
  });
}
