import { BrigError } from "../../../errors.js";
import { formatBytes } from "../../../lib/bytes.js";
import type { FileChunk } from "./file-chunks.js";

/** More than a line of a text has. A hole of a sparse file counts, without being read. */
const MAX_LINE_BYTES = 64 * 1024 * 1024;
/** Of a line that goes on in the next piece of a file only so much is kept: what is printed of it is far less. */
const LINE_HEAD_BYTES = 4096;

const LINE_FEED = 0x0a;

/** Gets a line without its end, of a long one at least the first 4 KiB. False ends the reading. */
export type LineVisitor = (text: string, number: number) => boolean;

/**
 * Visits the lines from `firstLine` on and returns how many lines were seen in all. Lines end with LF or CR LF; a final line
 * without an end counts, nothing after the last end does not. Of a long line no more is read than has to be. What is no UTF-8 is
 * replaced.
 */
export async function visitLines(
  chunks: AsyncIterable<FileChunk>,
  firstLine: number,
  visit: LineVisitor,
): Promise<number> {
  const open = new OpenLine();
  let number = 1;
  /** False once enough has been seen: a line is shown as soon as it is known. */
  const extend = (bytes: Buffer, more = 0): boolean => {
    const wasKnown = open.isKnown;
    open.add(bytes, number);
    if (number >= firstLine && open.isKnown && !wasKnown && !visit(open.text, number)) return false;
    open.grow(more, number);
    return true;
  };
  for await (const { holeBytes, data: chunk } of chunks) {
    const zeros = Buffer.alloc(Math.min(holeBytes, LINE_HEAD_BYTES));
    if (!extend(zeros, holeBytes - zeros.length)) return number;
    let at = 0;
    const lastEnd = chunk.lastIndexOf(LINE_FEED);
    while (at <= lastEnd && (number < firstLine || !open.isEmpty)) {
      const end = chunk.indexOf(LINE_FEED, at);
      const isNews = number >= firstLine && !open.isKnown;
      if (isNews && !visit(open.endingWith(chunk.subarray(at, end)), number)) return number;
      open.startAnew();
      number++;
      at = end + 1;
    }
    if (at <= lastEnd) {
      // All at once: decoding and cutting line by line takes several times as long.
      for (const line of chunk.toString("utf8", at, lastEnd).split("\n")) {
        if (!visit(withoutReturn(line), number)) return number;
        number++;
      }
      at = lastEnd + 1;
    }
    if (!extend(chunk.subarray(at))) return number;
  }
  if (open.isEmpty) return number - 1;
  if (number >= firstLine && !open.isKnown) visit(open.text, number);
  return number;
}

function withoutReturn(line: string): string {
  return line.endsWith("\r") ? line.slice(0, -1) : line;
}

/** A line whose end has not been seen. */
class OpenLine {
  #head: Buffer = Buffer.alloc(0);
  #bytes = 0;

  get isEmpty(): boolean {
    return this.#bytes === 0;
  }

  /** No more of it is looked at. */
  get isKnown(): boolean {
    return this.#head.length === LINE_HEAD_BYTES;
  }

  get text(): string {
    return this.#head.toString("utf8");
  }

  add(bytes: Buffer, number: number): void {
    this.grow(bytes.length, number);
    const wanted = LINE_HEAD_BYTES - this.#head.length;
    if (wanted > 0 && bytes.length > 0) this.#head = Buffer.concat([this.#head, bytes.subarray(0, wanted)]);
  }

  /** The text of the line, these being its last bytes before the line feed. */
  endingWith(bytes: Buffer): string {
    return withoutReturn(Buffer.concat([this.#head, bytes]).toString("utf8"));
  }

  /** By bytes that are not looked at. */
  grow(bytes: number, number: number): void {
    this.#bytes += bytes;
    if (this.#bytes > MAX_LINE_BYTES) throw lineTooLong(number);
  }

  startAnew(): void {
    if (this.isEmpty) return;
    this.#head = Buffer.alloc(0);
    this.#bytes = 0;
  }
}

function lineTooLong(number: number): BrigError {
  return new BrigError(
    `failed to read file: line ${number} is longer than ${formatBytes(MAX_LINE_BYTES)}; lower the limit to end with it`,
    { code: "file.too-large" },
  );
}
