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

/** Without the last character where some of its bytes are missing. */
export function wholeCharacters(bytes: Uint8Array): Uint8Array {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes.at(-back) ?? 0;
    if (!isContinuation(byte)) return characterBytes(byte) > back ? bytes.subarray(0, -back) : bytes;
  }
  return bytes;
}

/** Whether a byte goes on with a character that another one began. */
export function isContinuation(byte: number): boolean {
  return (byte & 0xc0) === 0x80;
}

function characterBytes(firstByte: number): number {
  if (firstByte >= 0xf0) return 4;
  if (firstByte >= 0xe0) return 3;
  return firstByte >= 0xc0 ? 2 : 1;
}
