/**
 * The longest beginning of whole characters that takes at most so many bytes as UTF-8. What is cut is a text of its own, not a
 * part that keeps the whole of it in memory.
 */
export function cutText(text: string, maxBytes: number): string {
  // A UTF-16 unit takes three bytes at most.
  if (text.length * 3 <= maxBytes) return text;
  const bytes = Buffer.alloc(maxBytes);
  const { read, written } = new TextEncoder().encodeInto(text, bytes);
  return read === text.length ? text : bytes.toString("utf8", 0, written);
}
