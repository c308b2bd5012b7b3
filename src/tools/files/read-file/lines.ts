import { BrigError } from "../../../errors.js";
import { formatBytes } from "../../../lib/bytes.js";
import type { FileChunk } from "./file-chunks.js";

/** Holes of a sparse file count, although they are not read. */
const MAX_LINE_BYTES = 64 * 1024 * 1024;
/** How much is kept of a line that continues in the next chunk. The output has far less of each line. */
const LINE_HEAD_BYTES = 4096;

const LINE_FEED = 0x0a;

/** Receives a line without its end, or at least the first 4 KiB of it. Returns false to stop reading. */
export type LineVisitor = (text: string, number: number) => boolean;

/**
 * Visits the lines from `firstLine` on. Returns the number of all lines until then. Lines end with LF or CR
 * LF; the last one may have no end. Invalid UTF-8 is replaced. If the visitor stops, no more of a long line
 * is read.
 */
export async function visitLines(
  chunks: AsyncIterable<FileChunk>,
  firstLine: number,
  visit: LineVisitor,
): Promise<number> {
  const open = new OpenLine();
  let number = 1;
  /** Visits the open line as soon as enough of it is known. Returns false to stop. */
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
      const isVisited = number < firstLine || open.isKnown;
      if (!isVisited && !visit(open.endingWith(chunk.subarray(at, end)), number)) return number;
      open.clear();
      number++;
      at = end + 1;
    }
    if (at <= lastEnd) {
      // To decode and split the lines one by one takes several times as long.
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

/** A line whose end has not been read yet. */
class OpenLine {
  #head: Buffer = Buffer.alloc(0);
  #bytes = 0;

  get isEmpty(): boolean {
    return this.#bytes === 0;
  }

  /** Whether as much as is kept of a line has been read. */
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

  /** The text of the line if these are its last bytes. */
  endingWith(bytes: Buffer): string {
    return withoutReturn(Buffer.concat([this.#head, bytes]).toString("utf8"));
  }

  /** Adds bytes whose values do not matter. */
  grow(bytes: number, number: number): void {
    this.#bytes += bytes;
    if (this.#bytes > MAX_LINE_BYTES) throw lineTooLong(number);
  }

  clear(): void {
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
