import { isContinuation, wholeEnd, wholeStart } from "../../lib/utf8.js";
import { textEnd, textStart } from "./cut-text.js";

/** The size of a part of an output that was not kept. */
export interface Gap {
  bytes: number;
  chars: number;
  lineFeeds: number;
}

export type Piece = string | Gap;

/**
 * The kept texts of a command's output, in order, with a gap wherever something was dropped. Gaps have
 * counts, so that the sizes of the whole output stay known even if it is cut again.
 */
export interface CapturedOutput {
  readonly pieces: readonly Piece[];
}

export function captured(...parts: readonly (Piece | CapturedOutput)[]): CapturedOutput {
  const pieces = parts.flatMap((part) =>
    typeof part === "object" && "pieces" in part ? part.pieces : [part],
  );
  return { pieces: pieces.filter((piece) => (typeof piece === "string" ? piece !== "" : piece.bytes > 0)) };
}

/** Renders the text with a note in place of each gap. */
export function renderOutput({ pieces }: CapturedOutput): string {
  return pieces
    .map((piece) => (typeof piece === "string" ? piece : `\n... ${piece.bytes} bytes omitted ...\n`))
    .join("");
}

const countsOfText: Record<keyof Gap, (text: string) => number> = {
  bytes: Buffer.byteLength,
  // Code points, not UTF-16 units.
  chars: (text) => text.replace(/[\ud800-\udbff][\udc00-\udfff]/g, ".").length,
  lineFeeds: countLineFeeds,
};

/** Counts the whole output, including gaps. */
export function total({ pieces }: CapturedOutput, what: keyof Gap): number {
  const counts = pieces.map((piece) => (typeof piece === "string" ? countsOfText[what](piece) : piece[what]));
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Counts only the texts, without gaps. */
export function keptBytes({ pieces }: CapturedOutput): number {
  return total({ pieces: pieces.filter((piece) => typeof piece === "string") }, "bytes");
}

/** Counts the lines of the whole output. Only line feeds end a line, and the last line may have none. */
export function countLines(output: CapturedOutput): number {
  const last = output.pieces.at(-1);
  const hasUnendedLine = last !== undefined && !(typeof last === "string" && last.endsWith("\n"));
  return total(output, "lineFeeds") + (hasUnendedLine ? 1 : 0);
}

function countLineFeeds(text: string): number {
  let count = 0;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) count++;
  return count;
}

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

/** The amount of an output that a model receives. One token counts as four bytes. */
export interface TruncationPolicy {
  mode: "tokens" | "bytes";
  limit: number;
}

export const BYTES_PER_TOKEN = 4;

function byteBudget({ mode, limit }: TruncationPolicy): number {
  return mode === "tokens" ? limit * BYTES_PER_TOKEN : limit;
}

export function tokenBudget({ mode, limit }: TruncationPolicy): number {
  return mode === "tokens" ? limit : tokensOfBytes(limit);
}

export function tokensOfBytes(bytes: number): number {
  return Math.ceil(bytes / BYTES_PER_TOKEN);
}

export function truncateText(text: string, policy: TruncationPolicy): string {
  return truncateOutput(captured(text), policy);
}

/** Like `truncateOutput`, but begins with a warning and the numbers of tokens and lines if it is cut. */
export function truncateWithLineCount(output: CapturedOutput, policy: TruncationPolicy): string {
  const text = truncateOutput(output, policy);
  const bytes = total(output, "bytes");
  if (bytes <= byteBudget(policy)) return text;
  return (
    `Warning: truncated output (original token count: ${tokensOfBytes(bytes)})\n` +
    `Total output lines: ${countLines(output)}\n\n${text}`
  );
}

/**
 * Cuts the middle out of an output that is over the budget. Keeps half of the budget at each end, in whole
 * characters, and puts a marker with the size of the cut between them.
 */
export function truncateOutput(output: CapturedOutput, policy: TruncationPolicy): string {
  const budget = byteBudget(policy);
  if (keptBytes(output) <= budget) return renderOutput(output);
  const { start, cut, end } = cutMiddle(output, budget);
  const missingBytes = cut.bytes + keptBytes(start) + keptBytes(end) - budget;
  const marker =
    policy.mode === "tokens"
      ? `…${tokensOfBytes(missingBytes)} tokens truncated…`
      : `…${cut.chars} chars truncated…`;
  return renderOutput(start) + marker + renderOutput(end);
}

/**
 * Keeps texts in order until the budget is spent. The text that exceeds it is cut; a note at the end counts
 * the omitted ones. Images do not count.
 */
export function truncateParts(parts: readonly OutputPart[], policy: TruncationPolicy): OutputPart[] {
  const { mode } = policy;
  let left = policy.limit;
  let omitted = 0;
  const kept = parts.flatMap((part): OutputPart[] => {
    if (part.type !== "input_text") return [part];
    if (left <= 0) {
      omitted++;
      return [];
    }
    const text = truncateText(part.text, { mode, limit: left });
    const bytes = Buffer.byteLength(part.text);
    left -= mode === "tokens" ? tokensOfBytes(bytes) : bytes;
    return [{ ...part, text }];
  });
  return omitted === 0
    ? kept
    : [...kept, { type: "input_text", text: `[omitted ${omitted} text items ...]` }];
}

/** Like `truncateOutput`, but the middle becomes a gap, so that the result can be cut again. */
export function shrinkOutput(output: CapturedOutput, maxBytes: number): CapturedOutput {
  if (keptBytes(output) <= maxBytes) return output;
  const { start, cut, end } = cutMiddle(output, maxBytes);
  return captured(start, cut, end);
}

function cutMiddle(
  output: CapturedOutput,
  budget: number,
): { start: CapturedOutput; cut: Gap; end: CapturedOutput } {
  const startBudget = Math.floor(budget / 2);
  const start = captured(...fitting(output.pieces, startBudget, textStart));
  const end = captured(...fitting(output.pieces.toReversed(), budget - startBudget, textEnd).toReversed());
  const left = (what: keyof Gap) => total(output, what) - total(start, what) - total(end, what);
  return { start, cut: { bytes: left("bytes"), chars: left("chars"), lineFeeds: left("lineFeeds") }, end };
}

/** Returns the first pieces that fit. Gaps cost nothing; a gap next to the cut becomes a part of it. */
function fitting(pieces: readonly Piece[], budget: number, cut: typeof textStart): Piece[] {
  const kept: Piece[] = [];
  let left = budget;
  for (const piece of pieces) {
    const part = typeof piece === "string" ? cut(piece, left) : piece;
    kept.push(part);
    if (part !== piece) break;
    left -= typeof part === "string" ? Buffer.byteLength(part) : 0;
  }
  return kept.slice(0, kept.findLastIndex((piece) => typeof piece === "string" && piece !== "") + 1);
}
