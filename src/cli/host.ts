import { constants } from "node:os";
import { currentDirectory } from "../config/current-directory.js";
import { type Environment, readEnvironment } from "../config/env.js";
import { BrigError } from "../errors.js";
import { sharedSignal } from "../lib/time/shared-signal.js";
import type { CliContext, Interruption } from "./context.js";

/** The part of Node's `process` that a command line program lives in. */
export type HostProcess = Pick<
  NodeJS.Process,
  "stdin" | "stdout" | "stderr" | "cwd" | "env" | "on" | "exit" | "exitCode" | "kill" | "pid"
>;

export interface Host extends CliContext {
  exitStatus(): number;
  /** What became of standard output: null as long as it takes all that is written. */
  outputFailure(): (Interruption & { error: unknown }) | null;
}

/**
 * The process as a context. The first ctrl-C (SIGTERM, SIGHUP) aborts the signal, so that everything is closed in order;
 * the second ends the process at once, and the sandbox's lease cleans up.
 */
export function openHost(host: HostProcess): Host {
  const controller = new AbortController();
  let interruption: Interruption | null = null;
  let outputFailure: Interruption | null = null;
  let exitStatus = 0;
  let environment: Environment | undefined;

  const interrupt = (next: Interruption, message: string) => {
    if (interruption) return;
    interruption = next;
    controller.abort(new BrigError(message, { code: "aborted" }));
  };
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    const status = 128 + constants.signals[name];
    host.on(name, () => {
      // A terminal that is closed says so more than once; only a person is impatient.
      if (interruption && name !== "SIGHUP") host.exit(status);
      interrupt({ exitStatus: status, isQuiet: false }, `interrupted by ${name}`);
    });
  }
  host.stdout.on("error", (cause: NodeJS.ErrnoException) => {
    const isReaderGone = cause.code === "EPIPE";
    const exitStatus = isReaderGone ? 128 + constants.signals.SIGPIPE : 1;
    outputFailure ??= { exitStatus, isQuiet: isReaderGone };
    interrupt(outputFailure, `cannot write to standard output: ${cause.message}`);
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
    get cwd() {
      return currentDirectory(host);
    },
    get environment() {
      environment ??= readEnvironment(host.env, { cwd: () => currentDirectory(host) });
      return environment;
    },
    signal: sharedSignal(controller.signal),
    interruption: () => interruption,
    interrupt: () => {
      host.kill(host.pid, "SIGINT");
    },
    suspend: () => {
      // The process group. A signal to oneself is delivered before the call returns, and one that nobody could undo is dropped.
      host.kill(0, "SIGTSTP");
    },
    setExitStatus: (status) => {
      exitStatus = status;
    },
    exitStatus: () => exitStatus,
    outputFailure: () =>
      outputFailure === null ? null : { ...outputFailure, error: controller.signal.reason },
  };
}
