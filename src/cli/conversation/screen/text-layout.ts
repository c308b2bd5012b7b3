import { breakColumns, graphemeSegmenter } from "../../../lib/terminal/break-columns.js";
import { displayWidth, fitWidth } from "../../../lib/terminal/display-width.js";
import { neutraliseLine } from "../../../lib/terminal/terminal.js";
import { type Draft, elementAt } from "../input/draft.js";

const TAB = "    ";
const ascii = /^[\x20-\x7e]*$/;

/** Breaks a text into rows, between words where possible. Tabs become spaces. Returns at least one row. */
export function wrapText(text: string, columns: number): string[] {
  return withoutTabs(text)
    .split("\n")
    .flatMap((line) => wrapLine(line, Math.max(1, columns)));
}

export function withoutTabs(text: string): string {
  return text.replaceAll("\t", TAB);
}

function wrapLine(line: string, columns: number): string[] {
  if (displayWidth(line) <= columns) return [line.trimEnd()];
  const rows: string[] = [];
  let row = "";
  let width = 0;
  for (const word of line.match(/\s+|[^\s]+/g) ?? []) {
    const wordWidth = displayWidth(word);
    if (width + wordWidth <= columns) {
      row += word;
      width += wordWidth;
      continue;
    }
    if (width > 0) rows.push(row.trimEnd());
    row = "";
    width = 0;
    if (/^\s/.test(word)) continue;
    const pieces = breakColumns(word, columns);
    row = pieces.pop() ?? "";
    for (const piece of pieces) rows.push(piece);
    width = displayWidth(row);
  }
  if (row.trim() !== "" || rows.length === 0) rows.push(row.trimEnd());
  return rows;
}

export interface DraftLayout {
  /** Safe for a terminal. */
  rows: string[];
  /** The position in `rows`. */
  cursor: { row: number; column: number };
  hasMoreAbove: boolean;
  hasMoreBelow: boolean;
}

/** Lays out the part of a draft around its cursor, in a time that does not depend on the draft's length. */
export function layoutDraft(
  { text, cursor, elements }: Omit<Draft, "deleted">,
  { columns, maxRows }: { columns: number; maxRows: number },
): DraftLayout {
  const reach = columns * maxRows * 2;
  const start = windowStart(text, { cursor, maxRows, reach });
  const end = windowEnd(text, { cursor, maxRows, reach });
  const { rows, cursorAt } = layRows(text.slice(start, end), {
    cursor: cursor - start,
    columns,
    elements,
  });
  const first = Math.max(0, Math.min(cursorAt.row - Math.floor(maxRows / 2), rows.length - maxRows));
  const shown = rows.slice(first, first + maxRows);
  return {
    rows: shown,
    cursor: { row: cursorAt.row - first, column: cursorAt.column },
    hasMoreAbove: start > 0 || first > 0,
    hasMoreBelow: end < text.length || first + shown.length < rows.length,
  };
}

interface Window {
  cursor: number;
  maxRows: number;
  reach: number;
}

function windowStart(text: string, { cursor, maxRows, reach }: Window): number {
  const least = Math.max(0, cursor - reach);
  let start = cursor;
  for (let lines = 0; lines <= maxRows; lines++) {
    const newline = start === 0 ? -1 : text.lastIndexOf("\n", start - 1);
    if (newline < least) return least;
    start = newline;
  }
  return start + 1;
}

function windowEnd(text: string, { cursor, maxRows, reach }: Window): number {
  let end = cursor - 1;
  for (let lines = 0; lines <= maxRows; lines++) {
    const next = text.indexOf("\n", end + 1);
    if (next === -1) return Math.min(text.length, cursor + reach);
    end = next;
  }
  return Math.min(end, cursor + reach);
}

function layRows(
  text: string,
  { cursor, columns, elements }: Pick<Draft, "cursor" | "elements"> & { columns: number },
): { rows: string[]; cursorAt: { row: number; column: number } } {
  const rows: string[] = [];
  let row = "";
  let width = 0;
  let cursorAt = { row: 0, column: 0 };
  const breakRow = () => {
    rows.push(row);
    row = "";
    width = 0;
  };
  for (const { segment, index } of graphemeSegmenter().segment(text)) {
    const element = elementAt({ elements }, segment);
    const sign = element === null ? shownSign(segment) : fitWidth(element.label, columns);
    const signWidth = displayWidth(sign);
    if (segment !== "\n" && width + signWidth > columns) breakRow();
    if (index === cursor) cursorAt = { row: rows.length, column: width };
    if (segment === "\n") {
      breakRow();
    } else {
      row += sign;
      width += signWidth;
    }
  }
  if (cursor >= text.length) {
    // After a full row there is no room for the cursor.
    if (width >= columns) breakRow();
    cursorAt = { row: rows.length, column: width };
  }
  rows.push(row);
  return { rows, cursorAt };
}

function shownSign(grapheme: string): string {
  if (ascii.test(grapheme) || grapheme === "\n") return grapheme;
  return grapheme === "\t" ? TAB : neutraliseLine(grapheme);
}
