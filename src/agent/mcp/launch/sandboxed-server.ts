import { posix } from "node:path";
import { BrigError } from "../../../errors.js";
import type { ToolExit, ToolProcess, ToolSandbox } from "../../../tools/index.js";
import type { ServerExit, ServerProcess } from "../client/server-process.js";
import type { ServerCommand } from "../client/server-settings.js";

/**
 * Starts a server as a command of a sandbox. Whatever it leaves running ends with it. Error:
 * `mcp.start-failed` if the program does not exist there.
 */
export async function startIn(
  sandbox: Pick<ToolSandbox, "spawn" | "image">,
  { command, args, env, cwd }: ServerCommand,
  { directory }: { directory: string },
): Promise<ServerProcess> {
  const server = await sandbox.spawn([command, ...args], {
    cwd: posix.resolve(directory, cwd ?? ""),
    env,
    stdin: "pipe",
    endsTree: true,
  });
  const { stdin, stdout, stderr } = server;
  if (stdin === null || stderr === null) throw new TypeError("a server is started with three pipes");
  return { stdin, stdout, stderr, exited: exitOf(server), kill: () => server.kill() };
}

async function exitOf({ exit }: ToolProcess): Promise<ServerExit> {
  try {
    return describe(await exit);
  } catch (error) {
    // The sandbox has ended.
    return {
      exitCode: null,
      signal: null,
      reason: error instanceof BrigError ? error.message : String(error),
    };
  }
}

function describe({ exitCode, signal, startFailure, outOfMemory }: ToolExit): ServerExit {
  const reason = startFailure?.message ?? (outOfMemory ? "its container ran out of memory" : undefined);
  return { exitCode, signal, reason };
}
