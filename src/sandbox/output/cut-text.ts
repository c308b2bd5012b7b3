/** Returns the longest prefix of whole characters that takes at most `maxBytes` as UTF-8. */
export function textStart(text: string, maxBytes: number): string {
  // A UTF-16 unit takes three bytes at most.
  if (text.length * 3 <= maxBytes) return text;
  return text.slice(0, new TextEncoder().encodeInto(text, new Uint8Array(maxBytes)).read);
}

/** Like `textStart`, for the longest suffix. */
export function textEnd(text: string, maxBytes: number): string {
  // One UTF-16 unit is at least one byte, so no more units than bytes can fit.
  let start = Math.max(0, text.length - maxBytes);
  if (start > 0 && (text.codePointAt(start - 1) ?? 0) > 0xffff) start++;
  let bytes = Buffer.byteLength(text.slice(start));
  while (bytes > maxBytes) {
    const char = String.fromCodePoint(text.codePointAt(start) ?? 0);
    bytes -= Buffer.byteLength(char);
    start += char.length;
  }
  return text.slice(start);
}

/** Like `textStart`, but returns a copy: a slice would keep the whole text in memory. */
export function cutText(text: string, maxBytes: number): string {
  const start = textStart(text, maxBytes);
  return start.length === text.length ? text : Buffer.from(start).toString();
}

/** Shortens a line for display, and marks it if something is cut off. */
export function clipped(line: string, maxChars: number): string {
  return line.length > maxChars ? `${line.slice(0, maxChars)}…` : line;
}
