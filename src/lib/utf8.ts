/** Decodes one stream of bytes piece by piece: a character split between two pieces comes out whole. */
export class Utf8Stream {
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });

  /** The text that is complete so far; invalid bytes become U+FFFD. */
  push(bytes: Uint8Array): string {
    return this.#decoder.decode(bytes, { stream: true });
  }

  /** What an unfinished character at the end turns into: U+FFFD or nothing. */
  end(): string {
    return this.#decoder.decode();
  }
}
