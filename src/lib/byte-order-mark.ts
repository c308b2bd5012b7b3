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
