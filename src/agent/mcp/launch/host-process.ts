import { spawn } from "node:child_process";
import { resolve } from "node:path";
import { pause } from "../../../lib/time/pause.js";
import type { ServerExit, ServerProcess } from "../client/server-process.js";
import type { ServerCommand } from "../client/server-settings.js";

/**
 * Variables without which many programs do not work. A server gets any other variable only if the user
 * configured it.
 */
const INHERITED = ["HOME", "LOGNAME", "PATH", "SHELL", "USER", "LANG", "LC_ALL", "TERM", "TMPDIR", "TZ"];

/** How long a server may take to exit after SIGTERM. */
const GRACE_MS = 500;

/**
 * Starts a server on this machine, where nothing contains it. The server gets a process group of its own, so
 * that `kill` also ends the processes that it started, and ctrl-C at the terminal does not reach it.
 */
export async function startOnHost(
  { command, args, env, cwd }: ServerCommand,
  {
    directory,
    variables,
    signal,
  }: { directory: string; variables: Readonly<Record<string, string>>; signal: AbortSignal },
): Promise<ServerProcess> {
  signal.throwIfAborted();
  const inherited = INHERITED.flatMap((name) =>
    variables[name] === undefined ? [] : [[name, variables[name]]],
  );
  const child = spawn(command, args, {
    cwd: resolve(directory, cwd ?? ""),
    env: { ...Object.fromEntries(inherited), ...env },
    stdio: ["pipe", "pipe", "pipe"],
    detached: true,
  });
  const { stdin, stdout, stderr, pid } = child;
  let hasEnded = false;
  const signalGroup = (name: NodeJS.Signals) => {
    if (pid === undefined || hasEnded) return;
    try {
      process.kill(-pid, name);
    } catch {
      // No process of the group is left.
    }
  };
  const exited = new Promise<ServerExit>((settle) => {
    child.once("error", ({ message }) => settle({ exitCode: null, signal: null, reason: message }));
    child.once("exit", (exitCode, killedBy) => {
      // Ends the processes that it left running. Later, the number of its group could belong to other
      // processes.
      signalGroup("SIGKILL");
      hasEnded = true;
      settle({ exitCode, signal: killedBy });
    });
  });
  // Without a listener, a write to a server that has ended would end brig.
  stdin.on("error", () => undefined);
  return {
    stdin,
    stdout,
    stderr,
    exited,
    async kill() {
      const over = new AbortController();
      signalGroup("SIGTERM");
      await Promise.race([exited, pause(GRACE_MS, over.signal).catch(() => undefined)]);
      over.abort();
      signalGroup("SIGKILL");
      await exited;
    },
  };
}
