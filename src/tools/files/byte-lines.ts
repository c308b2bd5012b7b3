import { decodeUtf8 } from "../../lib/utf8.js";

/** Longer than any path on Linux. */
const MAX_LINE_BYTES = 64 * 1024;

/** Splits a stream of bytes into lines. Drops lines that are too long without collecting them. */
export class ByteLines {
  readonly #separator: number;
  readonly #onLine: (line: string) => void;
  #open: Uint8Array[] = [];
  #openBytes = 0;

  /** `onLine` receives only lines that are valid UTF-8 and not empty. */
  constructor(separator: "\n" | "\0", onLine: (line: string) => void) {
    this.#separator = separator.charCodeAt(0);
    this.#onLine = onLine;
  }

  push(chunk: Uint8Array): void {
    let at = 0;
    for (let end = chunk.indexOf(this.#separator); end !== -1; end = chunk.indexOf(this.#separator, at)) {
      this.#add(chunk.subarray(at, end));
      this.end();
      at = end + 1;
    }
    this.#add(chunk.subarray(at));
  }

  /** Ends the current line. Call it at the end of the stream, too. */
  end(): void {
    const line = decodeUtf8(Buffer.concat(this.#open));
    if (line.kind === "text" && line.text !== "") this.#onLine(line.text);
    this.#open = [];
    this.#openBytes = 0;
  }

  #add(bytes: Uint8Array): void {
    this.#openBytes += bytes.length;
    if (this.#openBytes <= MAX_LINE_BYTES) this.#open.push(Uint8Array.from(bytes));
    else this.#open = [];
  }
}
