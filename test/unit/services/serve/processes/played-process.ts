import { PassThrough, Writable } from "node:stream";
import type { ExitStatus, SandboxProcess } from "../../../../../src/sandbox/index.js";

/** A process of a sandbox that does what the test says. */
export class PlayedProcess implements SandboxProcess {
  readonly stdin: Writable | null;
  readonly stdout = new PassThrough();
  readonly stderr: PassThrough | null;
  readonly exit: Promise<ExitStatus>;
  /** What was done to it: its input, signals, sizes and the end. */
  readonly events: string[] = [];
  /** Lets it take what waits to be written. */
  takeInput: () => void = () => undefined;
  readonly #resolve: (status: ExitStatus) => void;
  readonly #reject: (error: unknown) => void;

  constructor({
    stdin = "pipe",
    hasTerminal = false,
    takesInput = true,
  }: {
    stdin?: "pipe" | "closed" | undefined;
    hasTerminal?: boolean;
    takesInput?: boolean;
  } = {}) {
    const { events } = this;
    const take = (callback: () => void) => {
      if (takesInput) callback();
      else this.takeInput = callback;
    };
    this.stdin =
      stdin === "closed"
        ? null
        : new Writable({
            write(chunk: Buffer, _encoding, callback) {
              events.push(chunk.length > 20 ? `input of ${chunk.length}` : `input ${chunk}`);
              take(callback);
            },
            final(callback) {
              events.push("end of input");
              callback();
            },
          });
    this.stderr = hasTerminal ? null : new PassThrough();
    let [resolve, reject]: [(status: ExitStatus) => void, (error: unknown) => void] = [
      () => undefined,
      () => undefined,
    ];
    this.exit = new Promise((onEnd, onFailure) => {
      [resolve, reject] = [onEnd, onFailure];
    });
    this.exit.catch(() => undefined);
    [this.#resolve, this.#reject] = [resolve, reject];
  }

  print(text: string): void {
    this.stdout.write(text);
  }

  finish(status: Partial<ExitStatus> = {}): void {
    this.stdout.end();
    this.stderr?.end();
    this.stdin?.destroy();
    this.#resolve({ exitCode: 0, signal: null, timedOut: false, ...status } as ExitStatus);
  }

  fail(error: Error): void {
    this.stdout.destroy();
    this.stderr?.destroy();
    this.stdin?.destroy();
    this.#reject(error);
  }

  async kill(signal?: NodeJS.Signals): Promise<void> {
    this.events.push(signal ?? "end of the tree");
    if (signal === undefined) this.finish({ exitCode: 143, signal: "SIGTERM" });
  }

  resize({ rows, cols }: { rows: number; cols: number }): void {
    this.events.push(`size ${rows}x${cols}`);
  }
}
