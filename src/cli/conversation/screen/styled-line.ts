import { breakColumns } from "../../../lib/terminal/break-columns.js";
import { displayWidth, fitWidth } from "../../../lib/terminal/display-width.js";
import { withoutTabs, wrapText } from "./text-layout.js";

/** The role of a piece of text, which determines its colour. */
export type Tone =
  | "plain"
  | "quiet"
  | "strong"
  | "emphasis"
  | "accent"
  | "good"
  | "bad"
  | "warning"
  | "reasoning"
  | "prompt";

export interface Span {
  text: string;
  tone: Tone;
}

export type StyledLine = readonly Span[];

export function span(text: string, tone: Tone = "plain"): Span {
  return { text, tone };
}

/**
 * Breaks a text into rows, the first with a mark (`• text`) and the others indented to match. If there are
 * more than `maxRows` rows, the last row says how many were left out.
 */
export function markedRows(
  mark: Span,
  text: string,
  { columns, tone = "plain", maxRows = Number.POSITIVE_INFINITY }: RowOptions,
): StyledLine[] {
  const indent = displayWidth(mark.text);
  const rows = wrapText(text, columns - indent);
  const shown = rows.length > maxRows ? rows.slice(0, maxRows) : rows;
  const lines = shown.map((row, index) => [index === 0 ? mark : span(" ".repeat(indent)), span(row, tone)]);
  if (shown.length === rows.length) return lines;
  const rest = `⋮ ${plural(rows.length - shown.length, "more line")}`;
  return [...lines, [span(" ".repeat(indent)), span(rest, "quiet")]];
}

/** Breaks a line into rows as `wrapText` does it. Each piece of text keeps its tone. The line has no tabs. */
export function wrapSpans(line: StyledLine, columns: number): StyledLine[] {
  const text = line.map((each) => each.text).join("");
  let end = 0;
  return wrapText(text, columns).map((row) => {
    // Between two rows there are only spaces, and no row but the first begins with one.
    const start = text.indexOf(row, end);
    end = start + row.length;
    return partOfLine(line, start, end);
  });
}

function partOfLine(line: StyledLine, start: number, end: number): StyledLine {
  let at = 0;
  return line.flatMap(({ text, tone }) => {
    const part = text.slice(Math.max(0, start - at), Math.max(0, end - at));
    at += text.length;
    return part === "" ? [] : [span(part, tone)];
  });
}

export function lineWidth(line: StyledLine): number {
  return line.reduce((sum, { text }) => sum + displayWidth(text), 0);
}

export interface RowOptions {
  columns: number;
  tone?: Tone;
  maxRows?: number;
}

export function textLines(text: string, columns: number): StyledLine[] {
  return wrapText(text, columns).map((row) => [span(row)]);
}

const CODE_INDENT = "  ";

/** Code is only indented, so that who copies its rows has the code. */
export function codeLines(code: string, columns: number): StyledLine[] {
  return withoutTabs(code)
    .split("\n")
    .flatMap((line) => breakColumns(line, Math.max(1, columns - CODE_INDENT.length)))
    .map((row) => [span(CODE_INDENT), span(row, "accent")]);
}

/** Lines of an output behind a bar, each line in full. */
export function outputRows(lines: readonly string[], { columns, tone = "plain" }: RowOptions): StyledLine[] {
  return lines.flatMap((line) =>
    wrapText(line, columns - 4).map((row): StyledLine => [span("  │ ", "quiet"), span(row, tone)]),
  );
}

/** A line of an output behind a bar, cut to one row. */
export function outputRow(line: string, { columns, tone = "plain" }: RowOptions): StyledLine {
  const [row = "", ...more] = wrapText(line, columns - 5);
  return [span("  │ ", "quiet"), span(more.length === 0 ? row : `${row}…`, tone)];
}

/** Cuts a line to the width; an ellipsis marks the cut. */
export function fitLine(line: StyledLine, columns: number): StyledLine {
  if (lineWidth(line) <= columns) return line;
  const fitting: Span[] = [];
  let room = columns;
  for (const { text, tone } of line) {
    if (room <= 0) break;
    fitting.push(span(fitWidth(text, room), tone));
    room -= displayWidth(text);
  }
  return fitting;
}

export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
