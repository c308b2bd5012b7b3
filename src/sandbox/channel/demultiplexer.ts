import { protocolError } from "./frames.js";

const HEADER_BYTES = 8;
const STDOUT = 1;
const STDERR = 2;
/** Only a broken engine announces more. Docker's pieces were at most 32 KiB when measured. */
const MAX_FRAME_BYTES = 16 * 1024 * 1024;

/**
 * Undoes the engine's multiplexing of an exec without a terminal, without buffering: before each piece come 8
 * header bytes (stream, three zeros, big-endian length).
 */
export class Demultiplexer {
  readonly #header = Buffer.alloc(HEADER_BYTES);
  #headerFilled = 0;
  #stream = 0;
  #remaining = 0;

  push(chunk: Buffer, onData: (data: Buffer, isStderr: boolean) => void): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#remaining === 0) {
        at += this.#takeHeader(chunk, at);
        continue;
      }
      const end = Math.min(chunk.length, at + this.#remaining);
      this.#remaining -= end - at;
      onData(chunk.subarray(at, end), this.#stream === STDERR);
      at = end;
    }
  }

  #takeHeader(chunk: Buffer, at: number): number {
    const taken = chunk.copy(this.#header, this.#headerFilled, at, at + HEADER_BYTES - this.#headerFilled);
    this.#headerFilled += taken;
    if (this.#headerFilled < HEADER_BYTES) return taken;
    this.#headerFilled = 0;
    this.#stream = this.#header.readUInt8(0);
    this.#remaining = this.#header.readUInt32BE(4);
    if (this.#stream !== STDOUT && this.#stream !== STDERR)
      throw protocolError(`stream ${this.#stream} in the engine's multiplexing`);
    if (this.#remaining > MAX_FRAME_BYTES)
      throw protocolError(`${this.#remaining} bytes in the engine's multiplexing`);
    return taken;
  }
}
