import { finished } from "node:stream/promises";
import { isBrigError } from "../../../errors.js";
import { beforeAbort } from "../../../lib/time/before-abort.js";
import { Gate } from "../../../lib/time/gate.js";
import type { ExitStatus, PtySize, SandboxProcess } from "../../../sandbox/index.js";
import { Refusal } from "../http/refusal.js";
import type { CommandEnding } from "../sandboxes/command-log.js";
import type { RemoteProcessRecord } from "../wire/process-schemas.js";
import type { OutputLog, OutputStreamName } from "./output-log.js";

export interface ServedProcessOptions {
  id: string;
  argv: readonly string[];
  hasTerminal: boolean;
  /** What it is for, if its owner uses it itself. */
  purpose: string | null;
  /** Takes all of its output. */
  output: OutputLog;
  /** How much input an earlier owner has given it. */
  inputBytes: number;
  /** Called with its output, too. Default: nobody is. */
  onOutput?: ((stream: OutputStreamName, data: Uint8Array) => void) | undefined;
}

/** How much input is handed over at a time. A caller that gives up is rid of the rest. */
const INPUT_PIECE_BYTES = 64 * 1024;

/** One for all, since an error made at each end would hold what the callers hold. */
const GIVEN_UP = new Error("the input is written, or its caller has gone");

/** What is said of a process whose sandbox ended before it did, as if it had been killed. */
const LOST = { exitCode: 137, signal: "SIGKILL", timedOut: false };
/** The same if its sandbox is there. Its directory, for example, was removed before it could start. */
const NOT_STARTED = { exitCode: 126, signal: null, timedOut: false };

/** A process of a sandbox that runs on by itself: anybody who knows its id reads its output, gives it input, and ends it. */
export class ServedProcess {
  readonly id: string;
  readonly argv: readonly string[];
  readonly purpose: string | null;
  readonly output: OutputLog;
  /** Resolves when it has ended and its output is complete. Errors: `sandbox.gone`, `exec.bad-cwd`, `exec.invalid`. */
  readonly ended: Promise<ExitStatus>;
  /** As far as this service knows: an earlier owner may have started it. */
  readonly startedAtMs = Date.now();
  readonly #process: SandboxProcess;
  readonly #hasTerminal: boolean;
  readonly #onOutput: ServedProcessOptions["onOutput"];
  /** Called when it has taken input. */
  readonly inputListeners = new Set<() => void>();
  readonly #input = new Gate();
  #inputBytes: number;
  /** Called when it has ended while input is handed over to it. */
  #giveUpInput: () => void = () => undefined;
  #end: CommandEnding | null = null;

  constructor(process: SandboxProcess, options: ServedProcessOptions) {
    const { id, argv, hasTerminal, purpose, output, onOutput } = options;
    this.id = id;
    this.purpose = purpose;
    this.argv = argv;
    this.output = output;
    this.#process = process;
    this.#hasTerminal = hasTerminal;
    this.#onOutput = onOutput;
    this.#inputBytes = options.inputBytes;
    // Input that it does not take any more is no failure of the service.
    process.stdin?.on("error", () => undefined);
    this.ended = this.#run();
    this.ended.catch(() => undefined);
  }

  get record(): RemoteProcessRecord {
    const { id, argv } = this;
    const { exitCode, signal, timedOut } = this.#end ?? { exitCode: null, signal: null, timedOut: false };
    return {
      id,
      argv: [...argv],
      state: this.#end === null ? "running" : "ended",
      ...{ exitCode, signal, timedOut },
    };
  }

  get isRunning(): boolean {
    return this.#end === null;
  }

  /** Null while it runs. */
  get ending(): CommandEnding | null {
    return this.#end;
  }

  /** How much input it has taken from all callers. */
  get inputBytes(): number {
    return this.#inputBytes;
  }

  /** It was started without input, or that was closed. Otherwise only its end is a reason to refuse any. */
  get hasClosedInput(): boolean {
    return this.#process.stdin?.writableEnded ?? true;
  }

  /**
   * Resolves when it has room for more input; input of several callers is given to it in their order. Errors: a refusal with 409
   * once it takes no more; the signal's reason, after which it may have got a part.
   */
  async write(bytes: Uint8Array, { signal }: { signal?: AbortSignal | undefined } = {}): Promise<void> {
    this.#requireInput();
    const rest = { bytes };
    // Not the caller's signal: what it belongs to, such as a whole request, would be held as long as the process takes nothing.
    const over = new AbortController();
    const writing = this.#input.pass(() => this.#writePieces(rest), { width: 1, signal: over.signal });
    writing.catch(() => undefined);
    try {
      await beforeAbort(writing, signal);
    } finally {
      // Whoever has given up does not keep the memory of all that was to be written.
      rest.bytes = new Uint8Array(0);
      over.abort(GIVEN_UP);
    }
  }

  /** Ends its input, after all that is being written. Does nothing if it has none, or has ended. */
  async closeInput({ signal }: { signal?: AbortSignal | undefined } = {}): Promise<void> {
    const close = async () => {
      if (this.#takesInput) this.#process.stdin?.end();
    };
    await this.#input.pass(close, { width: 1, signal });
  }

  /** Error: `exec.invalid` if it has no terminal. */
  resize(size: PtySize): void {
    if (this.isRunning) this.#process.resize(size);
  }

  /** Signals its process group, or the foreground group of its terminal. Error: `exec.invalid` for no name of a signal. */
  async signal(name: string): Promise<void> {
    // The sandbox checks it.
    if (this.isRunning) await this.#process.kill(name as NodeJS.Signals);
  }

  /** Ends it and everything that it has started, and resolves when nothing of that is left. */
  async end(): Promise<void> {
    if (!this.isRunning) return;
    await this.#process.kill();
    await this.ended.catch(() => undefined);
  }

  get #takesInput(): boolean {
    const { stdin } = this.#process;
    return this.isRunning && stdin !== null && !stdin.destroyed && !stdin.writableEnded;
  }

  #requireInput(): void {
    if (this.#takesInput) return;
    throw new Refusal("the process takes no input any more", {
      status: 409,
      code: "exec.invalid",
      hint: 'it has ended, its input was closed, or it was started with stdin: "closed"',
    });
  }

  async #writePieces(rest: { bytes: Uint8Array }): Promise<void> {
    while (rest.bytes.length > 0) {
      this.#requireInput();
      // A copy, so that nothing else of what was sent is kept while it waits.
      const piece = Buffer.from(rest.bytes.subarray(0, INPUT_PIECE_BYTES));
      rest.bytes = rest.bytes.subarray(piece.length);
      await new Promise<void>((resolve) => {
        this.#giveUpInput = resolve;
        this.#process.stdin?.write(piece, () => resolve());
      });
      this.#inputBytes += piece.length;
      for (const listener of this.inputListeners) listener();
    }
  }

  async #run(): Promise<ExitStatus> {
    const { stdout, stderr, exit } = this.#process;
    const outputs = [
      this.#collect(stdout, this.#hasTerminal ? "pty" : "stdout"),
      ...(stderr === null ? [] : [this.#collect(stderr, "stderr")]),
    ];
    try {
      const status = await exit;
      await Promise.all(outputs);
      const { exitCode, signal, timedOut } = status;
      this.#end = { atMs: Date.now(), exitCode, signal, timedOut };
      return status;
    } catch (error) {
      await Promise.all(outputs);
      this.#addFailure(error);
      this.#end = { atMs: Date.now(), ...(isBadStart(error) ? NOT_STARTED : LOST) };
      throw error;
    } finally {
      this.output.close();
      this.#giveUpInput();
    }
  }

  /** Resolves when all of it is there. Never waits for whoever reads it, so that the process does not either. */
  async #collect(stream: SandboxProcess["stdout"], name: OutputStreamName): Promise<void> {
    stream.on("data", (data: Buffer) => {
      this.output.add(name, data);
      this.#onOutput?.(name, data);
    });
    // Why it has ended early is what `exit` rejects with.
    await finished(stream).catch(() => undefined);
  }

  #addFailure(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    const lineEnd = this.#hasTerminal ? "\r\n" : "\n";
    this.output.add(this.#hasTerminal ? "pty" : "stderr", Buffer.from(`brig: ${message}${lineEnd}`));
  }
}

function isBadStart(error: unknown): boolean {
  return isBrigError(error, "exec.bad-cwd") || isBrigError(error, "exec.invalid");
}
