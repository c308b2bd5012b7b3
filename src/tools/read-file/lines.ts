import { BrigError } from "../../errors.js";
import { formatBytes } from "../../lib/bytes.js";

/** More than a line of a text has; a terabyte of zeros is known by it after a moment. */
export const MAX_LINE_BYTES = 64 * 1024 * 1024;
/** Of a longer line only so much is looked at: what is printed of it is far less. */
export const LINE_HEAD_BYTES = 4096;

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

/** Gets the beginning of a line, without its end; the bytes are only good for the call. False ends the reading. */
export type LineVisitor = (head: Buffer, number: number) => boolean;

/**
 * Visits the lines from `firstLine` on and returns how many lines were seen in all. Lines end with LF or CR LF; a final line
 * without an end counts, nothing after the last end does not.
 */
export async function visitLines(
  chunks: AsyncIterable<Buffer>,
  firstLine: number,
  visit: LineVisitor,
): Promise<number> {
  const open = new OpenLine();
  let seen = 0;
  for await (const chunk of chunks) {
    let at = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, at)) {
      seen++;
      if (seen >= firstLine && !visit(open.finish(chunk, at, end), seen)) return seen;
      if (seen < firstLine) open.drop();
      at = end + 1;
    }
    open.add(chunk.subarray(at), seen + 1);
  }
  if (open.isEmpty) return seen;
  seen++;
  if (seen >= firstLine) visit(open.head, seen);
  return seen;
}

/** A line whose end has not been seen. */
class OpenLine {
  #head: Buffer = Buffer.alloc(0);
  #bytes = 0;

  get isEmpty(): boolean {
    return this.#bytes === 0;
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

  /** The head of the line that ends at `end` of a chunk, and a new line begins. */
  finish(chunk: Buffer, start: number, end: number): Buffer {
    const bytes = this.#bytes + end - start;
    const rest = chunk.subarray(start, Math.min(end, start + LINE_HEAD_BYTES - this.#head.length));
    const head = this.isEmpty ? rest : Buffer.concat([this.#head, rest]);
    this.drop();
    const endsInReturn = bytes === head.length && head.at(-1) === CARRIAGE_RETURN;
    return endsInReturn ? head.subarray(0, -1) : head;
  }

  drop(): void {
    if (this.isEmpty) return;
    this.#head = Buffer.alloc(0);
    this.#bytes = 0;
  }
}

function lineTooLong(number: number): BrigError {
  const hint = number > 1 ? `; only the ${number - 1} before it can be read` : "";
  return new BrigError(
    `failed to read file: line ${number} is longer than ${formatBytes(MAX_LINE_BYTES)}${hint}`,
    {
      code: "file.too-large",
    },
  );
}
