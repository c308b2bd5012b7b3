import { displayWidth } from "./display-width.js";
import { neutraliseLine } from "./terminal.js";

/**
 * Rows as aligned columns, one line each, with a newline at the end. Cells may carry colours; anything else that a
 * terminal would obey is shown as a sign.
 */
export function formatTable(rows: readonly (readonly string[])[]): string {
  const cells = rows.map((row) => row.map((cell) => neutraliseLine(cell, { colours: true })));
  const widths: number[] = [];
  for (const row of cells) {
    row.forEach((cell, column) => {
      widths[column] = Math.max(widths[column] ?? 0, displayWidth(cell));
    });
  }
  return cells
    .map(
      (row) =>
        `${row
          .map((cell, column) => pad(cell, widths[column]))
          .join("  ")
          .trimEnd()}\n`,
    )
    .join("");
}

function pad(cell: string, columns = 0): string {
  return cell + " ".repeat(columns - displayWidth(cell));
}
