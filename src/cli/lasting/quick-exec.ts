import { fstatSync } from "node:fs";
import { constants } from "node:os";
import { isAbsolute, resolve } from "node:path";
import { isatty } from "node:tty";
import type { ExitStatus } from "../../sandbox/index.js";
import { CommandConnection, serviceSocket, socketProblem } from "../../services/index.js";
import type { HostProcess } from "../host.js";

/** What this needs of its process. */
type QuickProcess = HostProcess & Pick<NodeJS.Process, "argv">;

const OWN_FAILURE = 125;
const NOT_FOUND = 127;
const SIGNALS = ["SIGINT", "SIGTERM", "SIGQUIT", "SIGHUP"] as const;

/**
 * Runs `brig exec --in` with what most calls of it have, and loads hardly any code for that, which would take longer than all the rest. For anything else,
 * and where something is not as it should be, the whole program is to run, which then says what is wrong: `otherwise` starts it, at once or later on.
 */
export function runQuickly(host: QuickProcess, otherwise: () => void): void {
  const call = quickCall(host.argv.slice(2));
  const socketPath = call === null ? null : socketIn(host.env);
  if (call === null || socketPath === null || !hasPlainStreams(call)) otherwise();
  else new QuickExec(host, call).run(socketPath, otherwise);
}

interface QuickCall {
  sandbox: string;
  argv: string[];
  cwd: string | null;
  env: Record<string, string>;
  takesInput: boolean;
}

/** Null for a call that has other options, or none at all, or that is wrong. */
export function quickCall([command, ...words]: readonly string[]): QuickCall | null {
  if (command !== "exec") return null;
  const call: QuickCall = { sandbox: "", argv: [], cwd: null, env: {}, takesInput: false };
  for (let at = 0; at < words.length; at++) {
    const word = words[at] as string;
    if (word === "--" || !word.startsWith("-")) {
      call.argv = words.slice(word === "--" ? at + 1 : at);
      break;
    }
    if (word === "-i" || word === "--interactive") {
      call.takesInput = true;
      continue;
    }
    const value = words[++at];
    if (value === undefined || value.startsWith("-") || !takeOption(call, word, value)) return null;
  }
  const [program = ""] = call.argv;
  return call.sandbox === "" || program === "" ? null : call;
}

/** False for an option that is not known here. */
function takeOption(call: QuickCall, option: string, value: string): boolean {
  const assigns = value.indexOf("=");
  if (option === "--in") call.sandbox = value;
  else if (option === "-C" || option === "--cd") call.cwd = value;
  else if ((option === "-e" || option === "--env") && assigns > 0)
    call.env[value.slice(0, assigns)] = value.slice(assigns + 1);
  else return false;
  return true;
}

/** The path of the owner's socket; null where the environment is unusual, or somebody else could listen there. */
function socketIn({ BRIG_HOME, HOME, BRIG_TRACE }: NodeJS.ProcessEnv): string | null {
  if (BRIG_TRACE !== undefined && BRIG_TRACE !== "0") return null;
  const home = BRIG_HOME || (HOME ? `${HOME}/.brig` : "");
  if (!isAbsolute(home)) return null;
  const socket = serviceSocket(resolve(home));
  return socketProblem(socket) === null ? socket.path : null;
}

/** A terminal must not get control sequences, and what is no stream cannot be read like one. The whole program knows both. */
function hasPlainStreams({ takesInput }: QuickCall): boolean {
  if (isatty(1) || isatty(2)) return false;
  if (!takesInput) return true;
  try {
    const facts = fstatSync(0);
    return !isatty(0) && (facts.isFIFO() || facts.isFile() || facts.isSocket());
  } catch {
    return false;
  }
}

class QuickExec {
  readonly #host: QuickProcess;
  readonly #call: QuickCall;
  #connection: CommandConnection | undefined;
  /** The status of an end that does not wait for the command's own. */
  #status: number | null = null;
  #hasPrinted = false;
  /** Pending while the reader of an output is slow. */
  readonly #rooms: Record<"stdout" | "stderr", Promise<void> | null> = { stdout: null, stderr: null };

  constructor(host: QuickProcess, call: QuickCall) {
    this.#host = host;
    this.#call = call;
  }

  /** Opened when it is first needed. What nobody can read there is no reason to end. */
  get #stderr(): NodeJS.WritableStream {
    const { stderr } = this.#host;
    if (stderr.listenerCount("error") === 0) stderr.on("error", () => undefined);
    return stderr;
  }

  run(socketPath: string, otherwise: () => void): void {
    const { sandbox, argv, cwd, env, takesInput } = this.#call;
    const once = { keepsOutput: false, isDetached: false };
    const connection = new CommandConnection(
      {
        socketPath,
        path: `/local/sandboxes/${encodeURIComponent(sandbox)}/exec`,
        command: { argv, cwd, env, takesInput, timeoutMs: null, pty: null, ...once, id: newId(this.#host) },
        reopen: async () => {
          const { nextOwnerOf } = await import("./reach-owner.js");
          await nextOwnerOf(this.#host);
        },
      },
      {
        onOpen: () => {
          for (const signal of SIGNALS) this.#host.on(signal, this.#onSignal);
          if (takesInput) this.#passInput();
        },
        onOutput: (stream, bytes) => this.#print(stream, bytes),
        onEnded: (end) => void this.#end(JSON.parse(end)),
        onError: (error) => void this.#fail(JSON.parse(error)),
        onLost: () => {
          if (this.#status !== null) this.#exit(this.#status);
          else if (connection.isOpen) void this.#lose();
          else otherwise();
        },
      },
    );
    this.#connection = connection;
  }

  readonly #onSignal = (name: NodeJS.Signals) => {
    const status = 128 + constants.signals[name];
    if (this.#status !== null && name !== "SIGHUP") this.#host.exit(status);
    this.#stderr.write(`brig: interrupted by ${name}\n`);
    this.#leave(status);
  };

  readonly #onOutputError = (error: NodeJS.ErrnoException) => {
    const isReaderGone = error.code === "EPIPE";
    if (!isReaderGone) this.#stderr.write(`brig: cannot write to standard output: ${error.message}\n`);
    this.#leave(isReaderGone ? 128 + constants.signals.SIGPIPE : 1);
  };

  /** Ends the command, and then this process. */
  #leave(status: number): void {
    if (this.#status !== null) return;
    this.#status = status;
    void this.#connection?.leave();
  }

  #print(stream: "stdout" | "stderr", bytes: Buffer): Promise<void> | undefined {
    const to = stream === "stdout" ? this.#host.stdout : this.#stderr;
    if (stream === "stdout" && !this.#hasPrinted) {
      this.#hasPrinted = true;
      to.on("error", this.#onOutputError);
    }
    if (to.write(bytes)) return undefined;
    const waiting = this.#rooms[stream] ?? roomIn(to);
    this.#rooms[stream] = waiting;
    return waiting.finally(() => {
      this.#rooms[stream] = null;
    });
  }

  #passInput(): void {
    const { stdin } = this.#host;
    stdin.on("data", (chunk: Buffer) => {
      stdin.pause();
      void this.#connection?.write(chunk).then(() => stdin.resume());
    });
    stdin.once("end", () => this.#connection?.endInput());
    stdin.once("error", (error) => {
      this.#stderr.write(`brig: standard input cannot be read: ${error.message}\n`);
      this.#leave(OWN_FAILURE);
    });
  }

  async #end(end: ExitStatus & { image: string }): Promise<void> {
    const { exitCode, timedOut, causes, image } = end;
    if (exitCode === NOT_FOUND || timedOut || causes.length > 0) {
      const { exitRemarks } = await import("../display/exit-remarks.js");
      this.#stderr.write(exitRemarks(end, { argv: this.#call.argv, image }));
    }
    this.#exit(this.#status ?? exitCode);
  }

  async #fail(error: object): Promise<void> {
    if (this.#status === null) {
      const [{ describeError }, { asBrigError }] = await Promise.all([
        import("../../command/index.js"),
        import("../../services/index.js"),
      ]);
      this.#stderr.write(describeError(asBrigError(error), { showsCauses: false }));
    }
    this.#exit(this.#status ?? OWN_FAILURE);
  }

  async #lose(): Promise<void> {
    const [{ describeError }, { unreachable }] = await Promise.all([
      import("../../command/index.js"),
      import("../../services/index.js"),
    ]);
    this.#stderr.write(describeError(unreachable(), { showsCauses: false }));
    this.#exit(OWN_FAILURE);
  }

  /** Input that is still open would keep the process. */
  #exit(status: number): void {
    if (this.#hasPrinted) this.#host.stdout.write("", () => this.#host.exit(status));
    else this.#host.exit(status);
  }
}

/** No other command of the sandbox has the same. Loading node:crypto takes longer than all of this file. */
function newId({ pid }: HostProcess): string {
  return `${pid}-${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}`;
}

/** Resolves when there is room for more, or nobody who reads. */
async function roomIn(stream: NodeJS.WritableStream): Promise<void> {
  await new Promise<void>((resolve) => {
    const go = () => {
      stream.off("drain", go).off("error", go);
      resolve();
    };
    stream.on("drain", go).on("error", go);
  });
}
