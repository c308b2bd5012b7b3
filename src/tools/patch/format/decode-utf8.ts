/** The text of a file, or why the bytes are none. A byte order mark is kept. */
export type Decoded = { kind: "text"; text: string } | { kind: "invalid"; reason: string };

export function decodeUtf8(bytes: Uint8Array): Decoded {
  try {
    return { kind: "text", text: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes) };
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

/** How many of the bytes from `at` on belong to one character, and whether it is all of it (Unicode, table 3-7). */
function sequenceAt(bytes: Uint8Array, at: number): { validBytes: number; isWhole: boolean } {
  const lead = bytes[at] ?? 0;
  const length = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
  let valid = Math.min(length, 1);
  while (valid < length && isContinuation(bytes[at + valid], valid === 1 ? lead : 0)) valid++;
  return { validBytes: valid, isWhole: length > 0 && valid === length };
}

/** Some leads allow only a part of the second byte's range: no overlong forms, no surrogates, nothing above U+10FFFF. */
function isContinuation(byte: number | undefined, lead: number): boolean {
  if (byte === undefined) return false;
  const min = lead === 0xe0 ? 0xa0 : lead === 0xf0 ? 0x90 : 0x80;
  const max = lead === 0xed ? 0x9f : lead === 0xf4 ? 0x8f : 0xbf;
  return byte >= min && byte <= max;
}
