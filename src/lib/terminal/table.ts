import { wrapWords } from "./break-columns.js";
import { displayWidth, fitWidth } from "./display-width.js";
import { neutraliseLine } from "./terminal.js";

/** With a narrower last column, the cells of a row are printed below each other instead. */
const LEAST_ROOM = 20;
const LEAST_CUT = 8;
const GAP = "  ";

export interface TableOptions {
  /** The terminal's width. Default: no limit, as for 0, which a terminal reports that does not know its width. */
  columns?: number | undefined;
}

/**
 * Aligned columns. Text in the last column is wrapped; if there is hardly any room for it, the cells of a row
 * are printed below each other. Cells may contain colours; other control characters become visible signs.
 */
export function formatTable(rows: readonly (readonly string[])[], options: TableOptions = {}): string {
  const columns = options.columns || Number.POSITIVE_INFINITY;
  const cells = rows.map((row) => row.map((cell) => neutraliseLine(cell, { colours: true })));
  const widths = columnWidths(cells);
  const indent = widthBeforeLast(widths);
  const room = columns - indent;
  if (room < Math.min(LEAST_ROOM, widths.at(-1) ?? 0)) return stacked(cells, columns);
  return cells
    .flatMap((row) => {
      const last = row.length === widths.length ? (row.at(-1) ?? "") : "";
      const [first = "", ...more] = wrapWords(last, room);
      const shown = row.length === widths.length ? [...row.slice(0, -1), first] : row;
      const line = shown.map((cell, column) => pad(cell, widths[column])).join(GAP);
      return [line, ...more.map((rest) => " ".repeat(indent) + rest)];
    })
    .map((line) => `${line.trimEnd()}\n`)
    .join("");
}

/**
 * Makes each row fit on one line: drops the columns with these names in the first row, in this order, until
 * there is room for the last one, and cuts that. If there is hardly any room even then, nothing is cut.
 */
export function fitRows(
  rows: readonly (readonly string[])[],
  { columns, expendable }: { columns: number; expendable: readonly string[] },
): string[][] {
  let fitting = rows.map((row) => row.map((cell) => neutraliseLine(cell)));
  const room = () => columns - widthBeforeLast(columnWidths(fitting));
  for (const name of expendable) {
    if (room() >= LEAST_ROOM) break;
    const left = fitting[0]?.indexOf(name);
    fitting = fitting.map((row) => row.filter((_, column) => column !== left));
  }
  const left = room();
  if (left < LEAST_CUT) return fitting;
  return fitting.map((row) => [...row.slice(0, -1), fitWidth(row.at(-1) ?? "", left)]);
}

function stacked(rows: readonly (readonly string[])[], columns: number): string {
  const lines = rows.flatMap((row) => {
    const filled: string[] = [];
    for (const [column, cell] of row.entries()) {
      if (cell === "") continue;
      const last = filled.at(-1);
      if (last !== undefined && displayWidth(last) + GAP.length + displayWidth(cell) <= columns)
        filled[filled.length - 1] = last + GAP + cell;
      else {
        const before = column === 0 ? "" : GAP;
        filled.push(...wrapWords(cell, columns - before.length).map((words) => before + words));
      }
    }
    return filled;
  });
  return lines.map((line) => `${line.trimEnd()}\n`).join("");
}

function columnWidths(rows: readonly (readonly string[])[]): number[] {
  const widths: number[] = [];
  for (const row of rows)
    for (const [column, cell] of row.entries())
      widths[column] = Math.max(widths[column] ?? 0, displayWidth(cell));
  return widths;
}

function widthBeforeLast(widths: readonly number[]): number {
  return widths.slice(0, -1).reduce((sum, width) => sum + width + GAP.length, 0);
}

function pad(cell: string, columns = 0): string {
  return cell + " ".repeat(columns - displayWidth(cell));
}
