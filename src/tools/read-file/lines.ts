import { BrigError } from "../../errors.js";
import { formatBytes } from "../../lib/bytes.js";

/** More than a line of a text has; a terabyte of zeros is known by it after a moment. */
const MAX_LINE_BYTES = 64 * 1024 * 1024;
/** Of a longer line only so much is looked at: what is printed of it is far less. */
const LINE_HEAD_BYTES = 4096;

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

/** Gets the beginning of a line, without its end; the bytes are only good for the call. False ends the reading. */
export type LineVisitor = (head: Buffer, number: number) => boolean;

/**
 * Visits the lines from `firstLine` on and returns how many lines were seen in all. Lines end with LF or CR LF; a final line
 * without an end counts, nothing after the last end does not. Of a long line no more is read than has to be.
 */
export async function visitLines(
  chunks: AsyncIterable<Buffer>,
  firstLine: number,
  visit: LineVisitor,
): Promise<number> {
  const line = new OpenLine();
  let number = 1;
  for await (const chunk of chunks) {
    let at = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, at)) {
      const isNews = number >= firstLine && !line.isKnown;
      if (isNews && !visit(line.endingWith(chunk, at, end), number)) return number;
      line.startAnew();
      number++;
      at = end + 1;
    }
    const wasKnown = line.isKnown;
    line.add(chunk.subarray(at), number);
    if (number >= firstLine && line.isKnown && !wasKnown && !visit(line.head, number)) return number;
  }
  if (line.isEmpty) return number - 1;
  if (number >= firstLine && !line.isKnown) visit(line.head, number);
  return number;
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

  get head(): Buffer {
    return this.#head;
  }

  add(bytes: Buffer, number: number): void {
    this.#bytes += bytes.length;
    if (this.#bytes > MAX_LINE_BYTES) throw lineTooLong(number);
    const wanted = LINE_HEAD_BYTES - this.#head.length;
    if (wanted > 0 && bytes.length > 0) this.#head = Buffer.concat([this.#head, bytes.subarray(0, wanted)]);
  }

  /** The head of the line whose last bytes stand in a chunk. */
  endingWith(chunk: Buffer, start: number, end: number): Buffer {
    const bytes = this.#bytes + end - start;
    const rest = chunk.subarray(start, Math.min(end, start + LINE_HEAD_BYTES - this.#head.length));
    const head = this.isEmpty ? rest : Buffer.concat([this.#head, rest]);
    const endsInReturn = bytes === head.length && head.at(-1) === CARRIAGE_RETURN;
    return endsInReturn ? head.subarray(0, -1) : head;
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
