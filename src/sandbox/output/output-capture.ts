import { isContinuation } from "../../lib/utf8.js";
import { type CapturedOutput, captured } from "./captured-output.js";
import { HeadAndTail, withoutCutCharacters } from "./head-and-tail.js";

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
