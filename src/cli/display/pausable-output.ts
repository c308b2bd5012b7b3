import { Writable } from "node:stream";
import type { OutputStream } from "../context.js";
import { write } from "../render.js";

/** Keeps what is written while it is paused, so that it does not mix with what is drawn on the terminal. */
export class PausableOutput extends Writable {
  readonly #target: OutputStream;
  readonly #kept: Buffer[] = [];
  #isPaused = false;

  constructor(target: OutputStream) {
    super();
    this.#target = target;
  }

  pause(): void {
    this.#isPaused = true;
  }

  /** Writes what was kept. */
  async resume(): Promise<void> {
    this.#isPaused = false;
    await write(this.#target, Buffer.concat(this.#kept.splice(0)));
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    if (this.#isPaused) this.#kept.push(chunk);
    void (this.#isPaused ? Promise.resolve() : write(this.#target, chunk)).then(done);
  }
}
