const strictDecoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Decodes a stream of bytes, whose pieces may split characters. */
export class Utf8Stream {
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });

  /** The text that is complete so far. Invalid bytes become U+FFFD. */
  push(bytes: Uint8Array): string {
    return this.#decoder.decode(bytes, { stream: true });
  }

  /** U+FFFD if the stream ends in the middle of a character, else nothing. */
  end(): string {
    return this.#decoder.decode();
  }
}

/** `reason` says why the bytes are not UTF-8. A byte order mark is kept. */
export type Decoded = { kind: "text"; text: string } | { kind: "invalid"; reason: string };

export function decodeUtf8(bytes: Uint8Array): Decoded {
  try {
    return { kind: "text", text: strictDecoder.decode(bytes) };
  } catch {
    return { kind: "invalid", reason: firstFault(bytes) };
  }
}

function firstFault(bytes: Uint8Array): string {
  for (let at = 0; at < bytes.length; ) {
    const { validBytes, isWhole } = sequenceAt(bytes, at);
    if (!isWhole)
      return at + validBytes >= bytes.length
        ? `incomplete utf-8 byte sequence from index ${at}`
        : `invalid utf-8 sequence of ${Math.max(validBytes, 1)} bytes from index ${at}`;
    at += validBytes;
  }
  return "invalid utf-8 sequence";
}

/** The number of bytes from `at` on that belong to one valid character (Unicode, table 3-7). */
function sequenceAt(bytes: Uint8Array, at: number): { validBytes: number; isWhole: boolean } {
  const lead = bytes[at] ?? 0;
  const isLead = lead < 0x80 || (lead >= 0xc2 && lead < 0xf5);
  const length = isLead ? characterBytes(lead) : 0;
  let valid = Math.min(length, 1);
  while (valid < length && goesOn(bytes[at + valid], valid === 1 ? lead : 0)) valid++;
  return { validBytes: valid, isWhole: isLead && valid === length };
}

/** Some lead bytes restrict the second byte: no overlong forms, no surrogates, nothing above U+10FFFF. */
function goesOn(byte: number | undefined, lead: number): boolean {
  if (byte === undefined) return false;
  const min = lead === 0xe0 ? 0xa0 : lead === 0xf0 ? 0x90 : 0x80;
  const max = lead === 0xed ? 0x9f : lead === 0xf4 ? 0x8f : 0xbf;
  return byte >= min && byte <= max;
}

/** The length of the bytes without an incomplete last character. */
export function wholeEnd(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes.at(-back) ?? 0;
    if (!isContinuation(byte)) return characterBytes(byte) > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}

/** The index of the first complete character; at most three bytes of an earlier one are skipped. */
export function wholeStart(bytes: Uint8Array): number {
  const start = bytes.subarray(0, 3).findIndex((byte) => !isContinuation(byte));
  return start === -1 ? Math.min(3, bytes.length) : start;
}

export function isContinuation(byte: number): boolean {
  return (byte & 0xc0) === 0x80;
}

function characterBytes(firstByte: number): number {
  if (firstByte >= 0xf0) return 4;
  if (firstByte >= 0xe0) return 3;
  return firstByte >= 0xc0 ? 2 : 1;
}

/** Editors and shells, above all on Windows, put it before a text, of which it is no part. */
export const BYTE_ORDER_MARK = "\uFEFF";

export function withoutMark(text: string): string {
  return text.startsWith(BYTE_ORDER_MARK) ? text.slice(BYTE_ORDER_MARK.length) : text;
}

/** The byte order mark decides between UTF-8 and UTF-16; without one it is UTF-8. Throws for anything else. */
export function decodeMarked(bytes: Uint8Array): string {
  const [first, second] = bytes;
  const encoding =
    first === 0xff && second === 0xfe ? "utf-16le" : first === 0xfe && second === 0xff ? "utf-16be" : "utf-8";
  return new TextDecoder(encoding, { fatal: true }).decode(bytes);
}
