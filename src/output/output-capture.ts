import { isContinuation, wholeCharacters } from "../lib/utf8.js";
import { type CapturedOutput, captured, type Gap } from "./captured-output.js";

const FIRST_ALLOCATION_BYTES = 16 * 1024;
const LINE_FEED = 0x0a;

/**
 * Keeps the first and the last half of a stream of bytes within a fixed amount of memory, and counts what falls between.
 * Bytes are decoded only when they are taken out, so a character split between two chunks stays whole.
 */
export class OutputCapture {
  readonly #headLimit: number;
  readonly #tail: Ring;
  #head = Buffer.alloc(0);
  #headBytes = 0;
  #dropped: Gap = { bytes: 0, chars: 0, lineFeeds: 0 };

  constructor(limitBytes: number) {
    this.#headLimit = Math.floor(limitBytes / 2);
    this.#tail = new Ring(limitBytes - this.#headLimit);
  }

  push(chunk: Uint8Array): void {
    const toHead = Math.min(chunk.length, this.#headLimit - this.#headBytes);
    if (toHead > 0) this.#appendToHead(chunk.subarray(0, toHead));
    if (toHead < chunk.length)
      this.#tail.push(chunk.subarray(toHead), (bytes) => {
        count(bytes, this.#dropped);
      });
  }

  /** Everything since the last call, and starts anew. */
  take(): CapturedOutput {
    const head = this.#head.subarray(0, this.#headBytes);
    const tail = this.#tail.take();
    const dropped = this.#dropped;
    this.#head = Buffer.alloc(0);
    this.#headBytes = 0;
    this.#dropped = { bytes: 0, chars: 0, lineFeeds: 0 };
    return dropped.bytes === 0
      ? captured(decode(Buffer.concat([head, tail])))
      : aroundGap(head, dropped, tail);
  }

  #appendToHead(bytes: Uint8Array): void {
    const needed = this.#headBytes + bytes.length;
    if (needed > this.#head.length) {
      const larger = Buffer.alloc(
        Math.min(this.#headLimit, Math.max(needed, this.#head.length * 2, FIRST_ALLOCATION_BYTES)),
      );
      this.#head.copy(larger, 0, 0, this.#headBytes);
      this.#head = larger;
    }
    this.#head.set(bytes, this.#headBytes);
    this.#headBytes = needed;
  }
}

/** The last bytes of a stream. */
class Ring {
  readonly #limit: number;
  #bytes = Buffer.alloc(0);
  /** Where the next byte goes; the oldest one once the ring is full. */
  #next = 0;
  #length = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  push(chunk: Uint8Array, onDrop: (bytes: Uint8Array) => void): void {
    if (this.#bytes.length === 0) this.#bytes = Buffer.alloc(this.#limit);
    const overflow = Math.max(0, this.#length + chunk.length - this.#limit);
    const fromRing = Math.min(overflow, this.#length);
    for (const oldest of this.#oldest(fromRing)) onDrop(oldest);
    this.#length -= fromRing;
    if (overflow > fromRing) onDrop(chunk.subarray(0, overflow - fromRing));
    this.#write(chunk.subarray(overflow - fromRing));
  }

  take(): Buffer {
    const bytes = Buffer.concat(this.#oldest(this.#length));
    this.#bytes = Buffer.alloc(0);
    this.#next = 0;
    this.#length = 0;
    return bytes;
  }

  #write(chunk: Uint8Array): void {
    const untilWrap = chunk.subarray(0, this.#limit - this.#next);
    this.#bytes.set(untilWrap, this.#next);
    this.#bytes.set(chunk.subarray(untilWrap.length), 0);
    this.#next = this.#limit === 0 ? 0 : (this.#next + chunk.length) % this.#limit;
    this.#length += chunk.length;
  }

  #oldest(length: number): Buffer[] {
    if (length === 0) return [];
    const start = (this.#next - this.#length + this.#limit) % this.#limit;
    const untilWrap = this.#bytes.subarray(start, Math.min(start + length, this.#limit));
    return [untilWrap, this.#bytes.subarray(0, length - untilWrap.length)];
  }
}

/** A character that the gap cuts belongs to the gap: its bytes are counted there, as the one character it was. */
function aroundGap(head: Buffer, dropped: Gap, tail: Buffer): CapturedOutput {
  const wholeHead = wholeCharacters(head);
  const tailStart = completeStart(tail);
  const gap = { ...dropped };
  count(head.subarray(wholeHead.length), gap);
  count(tail.subarray(0, tailStart), gap);
  return captured(decode(wholeHead), gap, decode(tail.subarray(tailStart)));
}

function count(bytes: Uint8Array, into: Gap): void {
  let chars = 0;
  let lineFeeds = 0;
  // An iterator would take ten times as long, and floods go through here.
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0;
    if (!isContinuation(byte)) chars++;
    if (byte === LINE_FEED) lineFeeds++;
  }
  into.bytes += bytes.length;
  into.chars += chars;
  into.lineFeeds += lineFeeds;
}

function completeStart(bytes: Buffer): number {
  const start = bytes.subarray(0, 3).findIndex((byte) => !isContinuation(byte));
  return start === -1 ? Math.min(3, bytes.length) : start;
}

function decode(bytes: Uint8Array): string {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
}
