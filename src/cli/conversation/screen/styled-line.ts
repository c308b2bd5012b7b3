import { displayWidth, fitWidth } from "../../../lib/terminal/display-width.js";
import { wrapText } from "./text-layout.js";

/** What a piece of text is, from which its colour follows. */
export type Tone = "plain" | "quiet" | "strong" | "accent" | "good" | "bad" | "warning" | "thought" | "asked";

export interface Span {
  text: string;
  tone: Tone;
}

/** One row of the screen, no wider than it. */
export type StyledLine = readonly Span[];

export function span(text: string, tone: Tone = "plain"): Span {
  return { text, tone };
}

/**
 * A text in rows, the first with a mark before it and the others indented as far: `• text`. The mark takes its own tone. With `maxRows`
 * the rest is left out and the last row says how much.
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

export interface RowOptions {
  columns: number;
  tone?: Tone;
  maxRows?: number;
}

/** The whole of each line in the margin of an output. */
export function outputRows(lines: readonly string[], { columns, tone = "plain" }: RowOptions): StyledLine[] {
  return lines.flatMap((line) =>
    wrapText(line, columns - 4).map((row): StyledLine => [span("  │ ", "quiet"), span(row, tone)]),
  );
}

/** As much of each line as one row takes. */
export function outputRow(line: string, { columns, tone = "plain" }: RowOptions): StyledLine {
  const [row = "", ...more] = wrapText(line, columns - 5);
  return [span("  │ ", "quiet"), span(more.length === 0 ? row : `${row}…`, tone)];
}

/** As much of a line as fits; a cut is marked with an ellipsis. */
export function fitLine(line: StyledLine, columns: number): StyledLine {
  if (line.reduce((sum, { text }) => sum + displayWidth(text), 0) <= columns) return line;
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
