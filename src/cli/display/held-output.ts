import { Writable } from "node:stream";
import type { OutputStream } from "../context.js";
import { write } from "../render.js";

/** Passes on what is written. While it is held it keeps that back: whoever draws on the terminal would draw over it. */
export class HeldOutput extends Writable {
  readonly #target: OutputStream;
  readonly #kept: Buffer[] = [];
  #isHeld = false;

  constructor(target: OutputStream) {
    super();
    this.#target = target;
  }

  hold(): void {
    this.#isHeld = true;
  }

  /** Writes what was kept back. */
  async release(): Promise<void> {
    this.#isHeld = false;
    await write(this.#target, Buffer.concat(this.#kept.splice(0)));
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    if (this.#isHeld) this.#kept.push(chunk);
    void (this.#isHeld ? Promise.resolve() : write(this.#target, chunk)).then(done);
  }
}
