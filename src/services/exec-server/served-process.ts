import { once } from "node:events";
import type { Readable } from "node:stream";
import type { ExitStatus, SandboxProcess } from "../../sandbox/index.js";
import { findDenial } from "../../sandbox/index.js";
import { OutputLog, type OutputStreamName } from "./output-log.js";

/** Sends a notification; resolves when the client has room for the next one. */
export type Notify = (method: string, params: object) => Promise<void>;

export interface ReadAnswer {
  chunks: object[];
  nextSeq: number;
  exited: boolean;
  exitCode: number | null;
  closed: boolean;
  failure: string | null;
  sandboxDenied: boolean;
}

export interface ServedProcessOptions {
  id: string;
  hasTerminal: boolean;
  hasNetwork: boolean;
  /** Whether a sandbox stands in the way at all. */
  isRestricted: boolean;
  notify: Notify;
}

/** Enough for the lines that say why a command was denied something. */
const DENIAL_TEXT_BYTES = 64 * 1024;

/** A process of a client: sends its output and its end as they come, and keeps the latest output. */
export class ServedProcess {
  readonly #process: SandboxProcess;
  readonly #options: ServedProcessOptions;
  readonly #log = new OutputLog();
  /** Resolves when the process has ended and everything was sent. */
  readonly closed: Promise<void>;
  #exit: { exitCode: number; sandboxDenied: boolean } | null = null;
  #isClosed = false;
  #failure: string | null = null;
  #latestText = "";
  /** Pending while the process takes no more input. */
  #room: Promise<void> | undefined;
  #waiting = new Set<() => void>();

  constructor(process: SandboxProcess, options: ServedProcessOptions) {
    this.#process = process;
    this.#options = options;
    // Input that the process does not take any more is no failure of the server.
    process.stdin?.on("error", () => undefined);
    this.closed = this.#run();
  }

  get isRunning(): boolean {
    return this.#exit === null && this.#failure === null;
  }

  /** Resolves when the process may be given more. False: it takes no input. */
  async write(data: Buffer): Promise<boolean> {
    const { stdin } = this.#process;
    if (stdin === null || stdin.destroyed || stdin.writableEnded) return false;
    if (stdin.write(data)) return true;
    this.#room ??= Promise.race([once(stdin, "drain").catch(() => undefined), this.closed]).then(() => {
      this.#room = undefined;
    });
    await this.#room;
    return true;
  }

  async interrupt(): Promise<void> {
    await this.#process.kill("SIGINT");
  }

  resize(size: { rows: number; cols: number }): void {
    this.#process.resize(size);
  }

  /** Ends the process and everything that it started. */
  async terminate(): Promise<void> {
    await this.#process.kill();
  }

  /** Reads the output after a number. If there is none, waits up to `waitMs` for some. */
  async read({
    afterSeq,
    maxBytes,
    waitMs,
  }: {
    afterSeq: number;
    maxBytes: number;
    waitMs: number;
  }): Promise<ReadAnswer> {
    const deadline = performance.now() + waitMs;
    for (;;) {
      const answer = this.#answer(afterSeq, maxBytes);
      const left = deadline - performance.now();
      const isNew =
        answer.chunks.length > 0 || answer.closed || (answer.exited && afterSeq < answer.nextSeq - 1);
      if (isNew || left <= 0) return answer;
      await this.#change(left);
    }
  }

  #answer(afterSeq: number, maxBytes: number): ReadAnswer {
    const chunks = this.#log.after(afterSeq, maxBytes);
    const last = chunks.at(-1);
    return {
      chunks,
      nextSeq: last === undefined ? this.#log.nextSeq : last.seq + 1,
      exited: this.#exit !== null,
      exitCode: this.#exit?.exitCode ?? null,
      closed: this.#isClosed,
      failure: this.#failure,
      sandboxDenied: this.#exit?.sandboxDenied ?? false,
    };
  }

  #change(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this.#waiting.delete(done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      this.#waiting.add(done);
    });
  }

  async #run(): Promise<void> {
    const { hasTerminal } = this.#options;
    const { stdout, stderr, exit } = this.#process;
    const streams = [this.#send(stdout, hasTerminal ? "pty" : "stdout")];
    if (stderr !== null) streams.push(this.#send(stderr, "stderr"));
    try {
      const [status] = await Promise.all([exit, ...streams]);
      await this.#end(status);
    } catch (error) {
      this.#failure = error instanceof Error ? error.message : String(error);
      await this.#tell(hasTerminal ? "pty" : "stderr", Buffer.from(`brig: ${this.#failure}\n`));
      // The client must not wait for a process whose sandbox is gone.
      await this.#end({ exitCode: 137, signal: "SIGKILL", timedOut: false });
    }
  }

  async #send(stream: Readable, name: OutputStreamName): Promise<void> {
    for await (const data of stream) await this.#tell(name, data);
  }

  async #tell(name: OutputStreamName, data: Buffer): Promise<void> {
    const chunk = this.#log.add(name, data);
    this.#latestText = (this.#latestText + data.toString("latin1")).slice(-DENIAL_TEXT_BYTES);
    this.#announce();
    await this.#options.notify("process/output", { processId: this.#options.id, ...chunk });
  }

  async #end(status: Pick<ExitStatus, "exitCode" | "signal" | "timedOut">): Promise<void> {
    const { id, notify, isRestricted, hasNetwork } = this.#options;
    const output = this.#latestText;
    const sandboxDenied = isRestricted && findDenial({ ...status, output }, { hasNetwork }) !== null;
    this.#exit = { exitCode: status.exitCode, sandboxDenied };
    const exitSeq = this.#log.takeSeq();
    this.#announce();
    const exited = notify("process/exited", { processId: id, seq: exitSeq, ...this.#exit });
    this.#isClosed = true;
    const closedSeq = this.#log.takeSeq();
    this.#announce();
    await Promise.all([exited, notify("process/closed", { processId: id, seq: closedSeq })]);
  }

  #announce(): void {
    for (const done of this.#waiting) done();
  }
}
