import { wholeEnd, wholeStart } from "../lib/utf8.js";

const FIRST_CAPACITY = 4096;
/**
 * Steep, since an outgrown buffer stays in memory until the next collection; what is allocated and not yet written to
 * costs nothing.
 */
const GROWTH = 16;

/** The bytes that were kept of a stream. Where nothing was left out, all of them are the head. */
export interface KeptBytes {
  head: Buffer;
  omittedBytes: number;
  tail: Buffer;
}

/** Keeps the first and the last bytes of a stream within a budget. Copies what it keeps. */
export class HeadAndTail {
  readonly #maxBytes: number;
  readonly #headBytes: number;
  /** Head and tail in one. Once it is full the tail is a ring that begins at `#oldest`. */
  #kept: Buffer = Buffer.alloc(0);
  #oldest: number;
  #total = 0;

  /** `headBytes` of the budget are for the head. Default: half of it, and the odd byte too. */
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

  /** Another one in the same state. */
  clone(): HeadAndTail {
    const copy = new HeadAndTail(this.#maxBytes, this.#headBytes);
    copy.#append(this.#kept.subarray(0, this.#keptBytes));
    copy.#oldest = this.#oldest;
    copy.#total = this.#total;
    return copy;
  }

  /** Everything since the last call, and starts anew. Head and tail lie one after the other in the same memory. */
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

/** A character that the gap cuts belongs to the gap. */
export function withoutCutCharacters({ head, omittedBytes, tail }: KeptBytes): KeptBytes {
  if (omittedBytes === 0) return { head, omittedBytes, tail };
  const whole = { head: head.subarray(0, wholeEnd(head)), tail: tail.subarray(wholeStart(tail)) };
  const cutBytes = head.length + tail.length - whole.head.length - whole.tail.length;
  return { ...whole, omittedBytes: omittedBytes + cutBytes };
}

/** Brings the byte at `first` to the front in place: a joined copy would hold everything twice. */
function rotate(bytes: Buffer, first: number): void {
  if (first === 0) return;
  bytes.subarray(0, first).reverse();
  bytes.subarray(first).reverse();
  bytes.reverse();
}
