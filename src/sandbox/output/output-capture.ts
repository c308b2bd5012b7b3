import { isContinuation, wholeEnd, wholeStart } from "../../lib/utf8.js";
import { type CapturedOutput, captured } from "./captured-output.js";

const LINE_FEED = 0x0a;

/** The part of an output that is kept for a model or a program: 1 MiB. */
export const KEPT_OUTPUT_BYTES = 1024 * 1024;

/**
 * Keeps the head and the tail of a command's output, and counts what is between them. Decodes the bytes only
 * in `take`, so that a character that is split between two chunks stays whole.
 */
export class OutputCapture {
  readonly #bytes: HeadAndTail;
  #seen = { chars: 0, lineFeeds: 0 };

  /** An odd byte goes to the tail, since `countLines` needs the last byte of the output. */
  constructor(limitBytes = KEPT_OUTPUT_BYTES) {
    this.#bytes = new HeadAndTail(limitBytes, Math.floor(limitBytes / 2));
  }

  push(chunk: Uint8Array): void {
    this.#bytes.push(chunk);
    const { chars, lineFeeds } = countBytes(chunk);
    this.#seen.chars += chars;
    this.#seen.lineFeeds += lineFeeds;
  }

  /** Returns everything since the last call. */
  take(): CapturedOutput {
    const seen = this.#seen;
    this.#seen = { chars: 0, lineFeeds: 0 };
    const { head, omittedBytes, tail } = withoutCutCharacters(this.#bytes.take());
    if (omittedBytes === 0) return captured(head.toString());
    const [ofHead, ofTail] = [countBytes(head), countBytes(tail)];
    const gap = {
      bytes: omittedBytes,
      chars: seen.chars - ofHead.chars - ofTail.chars,
      lineFeeds: seen.lineFeeds - ofHead.lineFeeds - ofTail.lineFeeds,
    };
    return captured(head.toString(), gap, tail.toString());
  }
}

function countBytes(bytes: Uint8Array): { chars: number; lineFeeds: number } {
  let chars = 0;
  let lineFeeds = 0;
  // An iterator would take ten times as long, and there can be a lot of output.
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0;
    if (!isContinuation(byte)) chars++;
    if (byte === LINE_FEED) lineFeeds++;
  }
  return { chars, lineFeeds };
}

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

/** A part of an output in the Responses API. */
export type OutputPart =
  | { type: "input_text"; text: string }
  /** `image_url` is a data URL. */
  | { type: "input_image"; image_url: string; detail?: "high" | "original" | undefined };
