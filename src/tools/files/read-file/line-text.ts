import { trim } from "../../../lib/white-space.js";
import { cutText } from "../../../sandbox/index.js";

const MAX_TEXT_BYTES = 500;
const TAB_WIDTH = 4;
const commentStarts = ["#", "//", "--"];

export function formatLine(number: number, line: string): string {
  return `L${number}: ${cutText(line, MAX_TEXT_BYTES)}`;
}

export function indentOf(line: string): number {
  let indent = 0;
  for (let at = 0; line[at] === " " || line[at] === "\t"; at++) indent += line[at] === "\t" ? TAB_WIDTH : 1;
  return indent;
}

export function isBlank(line: string): boolean {
  return trim(line) === "";
}

export function isComment(line: string): boolean {
  const text = trim(line);
  return commentStarts.some((start) => text.startsWith(start));
}
