/** The longest beginning of whole characters that takes at most so many bytes as UTF-8. */
export function textStart(text: string, maxBytes: number): string {
  // A UTF-16 unit takes three bytes at most.
  if (text.length * 3 <= maxBytes) return text;
  return text.slice(0, new TextEncoder().encodeInto(text, new Uint8Array(maxBytes)).read);
}

/** The longest such end. */
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

/** As `textStart`; what is cut is a text of its own, not a part that keeps the whole of it in memory. */
export function cutText(text: string, maxBytes: number): string {
  const start = textStart(text, maxBytes);
  return start.length === text.length ? text : Buffer.from(start).toString();
}

/** A line for a person: so much of its beginning, and a mark where there is more. */
export function clipped(line: string, maxChars: number): string {
  return line.length > maxChars ? `${line.slice(0, maxChars)}…` : line;
}
