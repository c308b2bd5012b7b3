import { isContinuation } from "../lib/utf8.js";
import { type CapturedOutput, captured } from "./captured-output.js";
import { HeadAndTail, withoutCutCharacters } from "./head-and-tail.js";

const LINE_FEED = 0x0a;

/** What is kept of an output that a model or a program is to read: 1 MiB. */
export const KEPT_OUTPUT_BYTES = 1024 * 1024;

/**
 * Keeps head and tail of a command's output, and counts what falls between. Bytes are decoded only when they are taken
 * out, so a character split between two chunks stays whole.
 */
export class OutputCapture {
  readonly #bytes: HeadAndTail;
  #seen = { chars: 0, lineFeeds: 0 };

  /** Half of the limit is for the head, the rest for the tail: from its last byte one sees whether the last line has ended. */
  constructor(limitBytes = KEPT_OUTPUT_BYTES) {
    this.#bytes = new HeadAndTail(limitBytes, Math.floor(limitBytes / 2));
  }

  push(chunk: Uint8Array): void {
    this.#bytes.push(chunk);
    const { chars, lineFeeds } = countBytes(chunk);
    this.#seen.chars += chars;
    this.#seen.lineFeeds += lineFeeds;
  }

  /** Everything since the last call, and starts anew. */
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
  // An iterator would take ten times as long, and floods go through here.
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0;
    if (!isContinuation(byte)) chars++;
    if (byte === LINE_FEED) lineFeeds++;
  }
  return { chars, lineFeeds };
}
