import { protocolError } from "../channel/frames.js";
import { EXTENT_BYTES_MAX, EXTENT_HEAD_BYTES } from "../channel/protocol.js";

/**
 * A part of a file that is no hole. The pieces of a file come in order, and what is between them is holes. The last one
 * has no bytes: its offset is the size of the file.
 */
export interface ContentPiece {
  offset: number;
  data: Buffer;
}

/** Parses a file with its holes as the runner writes it. Error: `protocol.invalid`. */
export class ExtentParser {
  #head: Buffer = Buffer.alloc(0);
  /** The place where the next bytes of the extent belong, and the number of bytes that are missing. */
  #offset = 0;
  #left = 0;
  #isOver = false;

  *push(bytes: Buffer): Generator<ContentPiece> {
    let at = 0;
    while (at < bytes.length) {
      if (this.#isOver) throw protocolError("more of a file behind its end");
      if (this.#left === 0) {
        const more = bytes.subarray(at, at + EXTENT_HEAD_BYTES - this.#head.length);
        at += more.length;
        this.#head = Buffer.concat([this.#head, more]);
        if (this.#head.length < EXTENT_HEAD_BYTES) return;
        this.#begin(this.#head);
        this.#head = Buffer.alloc(0);
        if (this.#isOver) yield { offset: this.#offset, data: Buffer.alloc(0) };
        continue;
      }
      const data = bytes.subarray(at, at + this.#left);
      yield { offset: this.#offset, data };
      at += data.length;
      this.#offset += data.length;
      this.#left -= data.length;
    }
  }

  end(): void {
    if (!this.#isOver) throw protocolError("a file that is cut off");
  }

  #begin(head: Buffer): void {
    const [offset, length] = [Number(head.readBigUInt64LE(0)), head.readUInt32LE(8)];
    if (!Number.isSafeInteger(offset + length) || offset < this.#offset || length > EXTENT_BYTES_MAX)
      throw protocolError("a part of a file in an impossible place");
    this.#offset = offset;
    this.#left = length;
    this.#isOver = length === 0;
  }
}

/** The same way back. */
export async function* encodeExtents(pieces: AsyncIterable<ContentPiece>): AsyncGenerator<Buffer> {
  for await (const { offset, data } of pieces) {
    if (data.length === 0) yield extentHead(offset, 0);
    for (let at = 0; at < data.length; at += EXTENT_BYTES_MAX) {
      const some = data.subarray(at, at + EXTENT_BYTES_MAX);
      yield Buffer.concat([extentHead(offset + at, some.length), some]);
    }
  }
}

function extentHead(offset: number, length: number): Buffer {
  const head = Buffer.alloc(EXTENT_HEAD_BYTES);
  head.writeBigUInt64LE(BigInt(offset), 0);
  head.writeUInt32LE(length, 8);
  return head;
}
