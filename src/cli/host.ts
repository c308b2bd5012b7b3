import { constants } from "node:os";
import { readEnvironment } from "../config/env.js";
import { BrigError } from "../errors.js";
import type { CliContext, Interruption } from "./context.js";

/** The part of Node's `process` that a command line program lives in. */
export type HostProcess = Pick<
  NodeJS.Process,
  "stdin" | "stdout" | "stderr" | "cwd" | "env" | "on" | "exit" | "exitCode"
>;

/**
 * The process as a context. The first ctrl-C (SIGTERM, SIGHUP) aborts the signal, so that everything is closed in order;
 * the second ends the process at once, and the sandbox's lease cleans up.
 */
export function openHost(host: HostProcess): CliContext & { exitStatus(): number } {
  const controller = new AbortController();
  let interruption: Interruption | null = null;
  let exitStatus = 0;

  const interrupt = (next: Interruption, message: string) => {
    if (interruption) return;
    interruption = next;
    controller.abort(new BrigError(message, { code: "aborted" }));
  };
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    const status = 128 + constants.signals[name];
    host.on(name, () => {
      if (interruption) host.exit(status);
      interrupt({ exitStatus: status, isQuiet: false }, `interrupted by ${name}`);
    });
  }
  host.stdout.on("error", (cause) => {
    interrupt(
      { exitStatus: 128 + constants.signals.SIGPIPE, isQuiet: true },
      `cannot write: ${cause.message}`,
    );
  });
  // Progress that nobody can read is no reason to stop.
  host.stderr.on("error", () => undefined);

  return {
    // Opened only by those who read it.
    get stdin() {
      return host.stdin;
    },
    stdout: host.stdout,
    stderr: host.stderr,
    cwd: host.cwd(),
    environment: readEnvironment(host.env),
    signal: controller.signal,
    interruption: () => interruption,
    setExitStatus: (status) => {
      exitStatus = status;
    },
    exitStatus: () => exitStatus,
  };
}
