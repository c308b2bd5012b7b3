import { createReadStream, fstatSync } from "node:fs";
import { constants } from "node:os";
import { Writable } from "node:stream";
import type { CliContext, InputStream, Interruption, OutputStream } from "../command/index.js";
import { BrigError } from "../errors.js";
import { currentDirectory } from "../lib/current-directory.js";
import { type Environment, readEnvironment, withColours } from "../lib/env.js";
import { closeGoneTerminals } from "../lib/terminal/closed-terminals.js";
import { sharedSignal } from "../lib/time/shared-signal.js";

export type HostProcess = Pick<
  NodeJS.Process,
  "stdin" | "stdout" | "stderr" | "cwd" | "env" | "on" | "off" | "exit" | "exitCode" | "kill" | "pid"
>;

export interface Host extends CliContext {
  exitStatus(): number;
  /** Runs what was left for the end of the program. */
  finish(): Promise<void>;
  /** The reason why standard output can no longer be written; null while it can. */
  outputFailure(): (Interruption & { error: unknown }) | null;
}

export function environmentOf(host: Pick<HostProcess, "env" | "cwd">): Environment {
  return readEnvironment(host.env, { cwd: () => currentDirectory(host) });
}

/**
 * Turns the process into a context. The first SIGINT (ctrl-C), SIGTERM, SIGQUIT (ctrl-\) or SIGHUP aborts the signal,
 * so that everything is closed in order. A second one ends the process immediately; the containers then end with
 * their leases.
 */
export function openHost(host: HostProcess): Host {
  const controller = new AbortController();
  let interruption: Interruption | null = null;
  let outputFailure: Interruption | null = null;
  let drain: ((interruption: Interruption) => void) | null = null;
  let exitStatus = 0;
  const finishers: (() => Promise<string | null>)[] = [];
  let environment: Environment | undefined;
  let stdin: InputStream | undefined;
  let stderr: OutputStream = host.stderr;

  const interrupt = (next: Interruption, message: string) => {
    if (interruption) return;
    interruption = next;
    controller.abort(new BrigError(message, { code: "aborted" }));
  };
  for (const name of ["SIGINT", "SIGTERM", "SIGQUIT", "SIGHUP"] as const) {
    const status = 128 + constants.signals[name];
    const waitsForWork = name === "SIGINT" || name === "SIGTERM";
    host.on(name, () => {
      if (drain !== null && waitsForWork) {
        const first = drain;
        drain = null;
        first({ exitStatus: status, isQuiet: false });
        return;
      }
      // A terminal that is closed may send SIGHUP more than once; that is not an impatient person.
      if (interruption && name !== "SIGHUP") host.exit(status);
      interrupt({ exitStatus: status, isQuiet: false }, `interrupted by ${name}`);
    });
  }
  host.on("exit", closeGoneTerminals);
  host.stdout.on("error", (cause: NodeJS.ErrnoException) => {
    // If the terminal was closed, this may come before its SIGHUP.
    const isTerminalGone = cause.code === "EIO" && host.stdout.isTTY;
    const signal = isTerminalGone ? "SIGHUP" : cause.code === "EPIPE" ? "SIGPIPE" : null;
    const exitStatus = signal === null ? 1 : 128 + constants.signals[signal];
    outputFailure ??= { exitStatus, isQuiet: signal !== null };
    interrupt(outputFailure, `cannot write to standard output: ${cause.message}`);
  });
  // Progress that nobody can read is no reason to stop, so errors of stderr are ignored.
  host.stderr.on("error", () => undefined);

  return {
    // Node opens stdin when this property is first read, so it is read only by commands that need it.
    get stdin() {
      stdin ??= readableInput(host);
      return stdin;
    },
    stdout: host.stdout,
    get stderr() {
      return stderr;
    },
    essentialStderr: host.stderr,
    get cwd() {
      return currentDirectory(host);
    },
    get environment() {
      environment ??= environmentOf(host);
      return environment;
    },
    signal: sharedSignal(controller.signal),
    interruption: () => interruption,
    drainFirst: (listener) => {
      drain = listener;
      return {
        [Symbol.dispose]: () => {
          drain = null;
        },
      };
    },
    onExit: (restore) => {
      host.on("exit", restore);
      return { [Symbol.dispose]: () => void host.off("exit", restore) };
    },
    beforeEnd: (finish) => {
      finishers.push(finish);
    },
    finish: async () => {
      for (const line of await Promise.all(finishers.splice(0).map((finish) => finish())))
        if (line !== null) host.stderr.write(line);
    },
    interrupt: () => {
      host.kill(host.pid, "SIGINT");
    },
    suspend: () => {
      // 0 is the process group. The kernel delivers the signal before the call returns, and drops it if the
      // group is orphaned, since no shell could continue it then.
      host.kill(0, "SIGTSTP");
    },
    chooseOutput: ({ isQuiet, color }) => {
      if (isQuiet) stderr = silenced(host.stderr);
      if (color !== "auto") environment = withColours(environment ?? environmentOf(host), color);
    },
    setExitStatus: (status) => {
      exitStatus = status;
    },
    exitStatus: () => exitStatus,
    outputFailure: () =>
      outputFailure === null ? null : { ...outputFailure, error: controller.signal.reason },
  };
}

/** Takes what is written, and drops it. Questions are still asked at a terminal that it stands for. */
function silenced({ isTTY, columns, rows }: OutputStream): OutputStream {
  const dropped = new Writable({ write: (_chunk, _encoding, done) => done() });
  return Object.assign(dropped, { isTTY, columns, rows });
}

/**
 * Node knows how to read terminals, files, pipes and sockets. For anything else, such as a directory or a block
 * device, its stdin ends at once, as if there were nothing to read.
 */
function readableInput({ stdin }: HostProcess): InputStream {
  // Streams that do not belong to the process have no descriptor.
  if (stdin.fd === undefined) return stdin;
  const facts = fstatSync(stdin.fd);
  const isKnown = facts.isCharacterDevice() || facts.isFile() || facts.isFIFO() || facts.isSocket();
  return isKnown ? stdin : createReadStream("", { fd: stdin.fd, autoClose: false });
}
