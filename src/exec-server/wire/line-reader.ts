/** A line, or the announcement of one that was longer than allowed and left out. */
export type ReadLine = { kind: "line"; text: string } | { kind: "too-long" };

/** Cuts a stream of bytes into lines. Holds at most one line of the allowed length. */
export class LineReader {
  readonly #maxBytes: number;
  #pieces: Buffer[] = [];
  #heldBytes = 0;
  #isTooLong = false;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Returns the lines that this piece completes. Blank lines are left out. */
  push(chunk: Buffer): ReadLine[] {
    const lines: ReadLine[] = [];
    let start = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      this.#hold(chunk.subarray(start, end));
      lines.push(...this.#take());
      start = end + 1;
    }
    this.#hold(chunk.subarray(start));
    return lines;
  }

  #hold(piece: Buffer): void {
    if (this.#heldBytes + piece.length > this.#maxBytes) {
      this.#isTooLong = true;
      this.#pieces = [];
      this.#heldBytes = 0;
    }
    if (this.#isTooLong || piece.length === 0) return;
    this.#pieces.push(piece);
    this.#heldBytes += piece.length;
  }

  #take(): ReadLine[] {
    const text = Buffer.concat(this.#pieces).toString();
    const isTooLong = this.#isTooLong;
    this.#pieces = [];
    this.#heldBytes = 0;
    this.#isTooLong = false;
    if (isTooLong) return [{ kind: "too-long" }];
    return text.trim() === "" ? [] : [{ kind: "line", text }];
  }
}
