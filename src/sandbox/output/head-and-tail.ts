import { wholeEnd, wholeStart } from "../../lib/utf8.js";

const FIRST_CAPACITY = 4096;
/**
 * Large, because the old buffer stays in memory until the next garbage collection, while allocated memory
 * costs nothing before it is written to.
 */
const GROWTH = 16;

/** The kept bytes of a stream. If nothing was omitted, all of them are in the head. */
export interface KeptBytes {
  head: Buffer;
  omittedBytes: number;
  tail: Buffer;
}

/** Keeps copies of the first and the last bytes of a stream, within a budget. */
export class HeadAndTail {
  readonly #maxBytes: number;
  readonly #headBytes: number;
  /** The head, then the tail. When the buffer is full, the tail is a ring that begins at `#oldest`. */
  #kept: Buffer = Buffer.alloc(0);
  #oldest: number;
  #total = 0;

  /** `headBytes` is the head's part of the budget. Default: half, rounded up. */
  constructor(maxBytes: number, headBytes = Math.ceil(maxBytes / 2)) {
    this.#maxBytes = maxBytes;
    this.#headBytes = headBytes;
    this.#oldest = headBytes;
  }

  get totalBytes(): number {
    return this.#total;
  }

  push(chunk: Uint8Array): void {
    const free = Math.min(this.#maxBytes - this.#keptBytes, chunk.length);
    if (free > 0) this.#append(chunk.subarray(0, free));
    if (free < chunk.length) this.#overwriteOldest(chunk.subarray(free));
    this.#total += chunk.length;
  }

  clone(): HeadAndTail {
    const copy = new HeadAndTail(this.#maxBytes, this.#headBytes);
    copy.#append(this.#kept.subarray(0, this.#keptBytes));
    copy.#oldest = this.#oldest;
    copy.#total = this.#total;
    return copy;
  }

  /** Returns everything since the last call. Head and tail are adjacent in the same memory. */
  take(): KeptBytes {
    const kept = this.#kept.subarray(0, this.#keptBytes);
    const omittedBytes = this.#total - kept.length;
    rotate(kept.subarray(this.#headBytes), this.#oldest - this.#headBytes);
    const end = omittedBytes === 0 ? kept.length : this.#headBytes;
    this.#kept = Buffer.alloc(0);
    this.#oldest = this.#headBytes;
    this.#total = 0;
    return { head: kept.subarray(0, end), omittedBytes, tail: kept.subarray(end) };
  }

  get #keptBytes(): number {
    return Math.min(this.#total, this.#maxBytes);
  }

  #append(chunk: Uint8Array): void {
    const end = this.#keptBytes + chunk.length;
    if (end > this.#kept.length) {
      const capacity = Math.max(end, this.#kept.length * GROWTH, FIRST_CAPACITY);
      const grown = Buffer.allocUnsafeSlow(Math.min(capacity, this.#maxBytes));
      this.#kept.copy(grown, 0, 0, this.#keptBytes);
      this.#kept = grown;
    }
    this.#kept.set(chunk, this.#keptBytes);
  }

  #overwriteOldest(chunk: Uint8Array): void {
    const tailBytes = this.#maxBytes - this.#headBytes;
    if (tailBytes === 0) return;
    for (let at = Math.max(0, chunk.length - tailBytes); at < chunk.length; ) {
      const part = chunk.subarray(at, at + this.#maxBytes - this.#oldest);
      this.#kept.set(part, this.#oldest);
      at += part.length;
      this.#oldest += part.length;
      if (this.#oldest === this.#maxBytes) this.#oldest = this.#headBytes;
    }
  }
}

/** Moves the parts of characters at the edges of the gap into the gap. */
export function withoutCutCharacters({ head, omittedBytes, tail }: KeptBytes): KeptBytes {
  if (omittedBytes === 0) return { head, omittedBytes, tail };
  const whole = { head: head.subarray(0, wholeEnd(head)), tail: tail.subarray(wholeStart(tail)) };
  const cutBytes = head.length + tail.length - whole.head.length - whole.tail.length;
  return { ...whole, omittedBytes: omittedBytes + cutBytes };
}

/** Moves the byte at `first` to the front, in place, since a copy would need twice the memory. */
function rotate(bytes: Buffer, first: number): void {
  if (first === 0) return;
  bytes.subarray(0, first).reverse();
  bytes.subarray(first).reverse();
  bytes.reverse();
}
