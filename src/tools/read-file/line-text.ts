import { trim } from "../apply-patch/white-space.js";
import { cutText } from "../cut-text.js";

const MAX_TEXT_BYTES = 500;
const LONGEST_CHARACTER_BYTES = 4;
const SPACE = 0x20;
const TAB = 0x09;
const TAB_WIDTH = 4;
const commentStarts = ["#", "//", "--"];

/** What is printed of a line: its first 500 bytes as UTF-8, whole characters only, invalid bytes replaced. */
export function lineText(head: Buffer): string {
  // Replacing never makes the text shorter, so no byte behind these can matter.
  return cutText(head.toString("utf8", 0, MAX_TEXT_BYTES + LONGEST_CHARACTER_BYTES), MAX_TEXT_BYTES);
}

export function formatLine(number: number, text: string): string {
  return `L${number}: ${text}`;
}

/** Leading spaces, a tab counting as four. */
export function indentOf(head: Buffer): number {
  let indent = 0;
  for (const byte of head) {
    if (byte !== SPACE && byte !== TAB) break;
    indent += byte === TAB ? TAB_WIDTH : 1;
  }
  return indent;
}

export function isBlank(head: Buffer): boolean {
  const first = head.find((byte) => byte !== SPACE && byte !== TAB);
  if (first !== undefined && first > SPACE && first < 0x80) return false;
  return trim(head.toString("utf8")) === "";
}

export function isComment(head: Buffer): boolean {
  const text = trim(head.toString("utf8"));
  return commentStarts.some((start) => text.startsWith(start));
}
