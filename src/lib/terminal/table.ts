import { wrapWords } from "./break-columns.js";
import { displayWidth, fitWidth } from "./display-width.js";
import { neutraliseLine } from "./terminal.js";

/** A last column that is narrower reads worse than cells below each other. */
const LEAST_ROOM = 20;
/** A cut cell that is shorter says nothing. */
const LEAST_CUT = 8;
const GAP = "  ";

export interface TableOptions {
  /**
   * The width of the terminal. Text in the last column that does not fit is wrapped within that column. If there is hardly any room for
   * the last column, the cells of a row are printed below each other. Default: no limit.
   */
  columns?: number | undefined;
}

/**
 * Rows as aligned columns, with a newline at the end of each. Cells may carry colours; anything else that a terminal would obey is
 * shown as a sign.
 */
export function formatTable(
  rows: readonly (readonly string[])[],
  { columns = Number.POSITIVE_INFINITY }: TableOptions = {},
): string {
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
 * Rows of which each fits on a line: columns of the names in `expendable`, which the first row has, are left out in their order until
 * there is room for the last column, and that is cut. Where even then there is next to none, nothing is cut: the table goes below each
 * other.
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

/** Each row's cells one after the other, on as many lines as they need; all but the first begin with a gap. */
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
