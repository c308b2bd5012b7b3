import { decodeUtf8 } from "../../lib/utf8.js";

/** No name on Linux is longer; what is, is no name. */
const MAX_LINE_BYTES = 64 * 1024;

/** Cuts a stream of bytes at a separator. Lines of any length cost no more memory than one that is kept. */
export class ByteLines {
  readonly #separator: number;
  readonly #onLine: (line: string) => void;
  #open: Uint8Array[] = [];
  #openBytes = 0;

  /** `onLine` gets the lines that are UTF-8 and not empty. */
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

  /** What came after the last separator is a line too. */
  end(): void {
    if (this.#openBytes > 0 && this.#openBytes <= MAX_LINE_BYTES) this.#tell(Buffer.concat(this.#open));
    this.#open = [];
    this.#openBytes = 0;
  }

  #add(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.#openBytes += bytes.length;
    if (this.#openBytes <= MAX_LINE_BYTES) this.#open.push(Uint8Array.from(bytes));
    else this.#open = [];
  }

  #tell(bytes: Uint8Array): void {
    const line = decodeUtf8(bytes);
    if (line.kind === "text") this.#onLine(line.text);
  }
}
