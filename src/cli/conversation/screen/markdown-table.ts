import { lineWidth, type StyledLine, span, wrapSpans } from "./styled-line.js";

export type Alignment = "left" | "center" | "right";

export interface Table {
  header: readonly StyledLine[];
  rows: readonly (readonly StyledLine[])[];
  alignments: readonly Alignment[];
}

const SEPARATOR = " │ ";
/** If a column that does not fit had fewer columns of the screen, the cells of a row are shown below each other instead. */
const LEAST_COLUMNS = 8;

/** A table that is no wider than the screen: cells are wrapped, or shown as `name: value` if there is hardly any room for them. */
export function tableLines(table: Table, columns: number): StyledLine[] {
  const widths = columnWidths(table, columns);
  if (widths === null) return listedRows(table, columns);
  const { header, rows, alignments } = table;
  const laid = rows.map((cells) => rowLines(cells, { widths, alignments }));
  const rule: StyledLine = [span(widths.map((width) => "─".repeat(width)).join("─┼─"), "quiet")];
  // Without a rule between them, nobody could tell wrapped cells from more rows.
  const isWrapped = laid.some((lines) => lines.length > 1);
  return [
    ...rowLines(header, { widths, alignments }),
    rule,
    ...laid.flatMap((lines, index) => (isWrapped && index > 0 ? [rule, ...lines] : lines)),
  ];
}

/** Null if there is too little room. Columns that need less than an equal share leave the rest to the others. */
function columnWidths({ header, rows }: Table, columns: number): number[] | null {
  const wanted = header.map((cell, at) =>
    rows.reduce((width, cells) => Math.max(width, lineWidth(cells[at] ?? [])), Math.max(1, lineWidth(cell))),
  );
  let room = columns - SEPARATOR.length * (wanted.length - 1);
  let most = Number.POSITIVE_INFINITY;
  for (const [at, width] of wanted.toSorted((a, b) => a - b).entries()) {
    const share = Math.floor(room / (wanted.length - at));
    if (width > share) {
      most = share;
      break;
    }
    room -= width;
  }
  return most < LEAST_COLUMNS ? null : wanted.map((width) => Math.min(width, most));
}

function rowLines(
  cells: readonly StyledLine[],
  { widths, alignments }: { widths: readonly number[]; alignments: readonly Alignment[] },
): StyledLine[] {
  const wrapped = widths.map((width, at) => wrapSpans(cells[at] ?? [], width));
  const height = Math.max(...wrapped.map((lines) => lines.length));
  return Array.from({ length: height }, (_, index) =>
    wrapped.flatMap((lines, at) => [
      ...(at === 0 ? [] : [span(SEPARATOR, "quiet")]),
      ...aligned(lines[index] ?? [], widths[at] ?? 0, alignments[at]),
    ]),
  );
}

function aligned(line: StyledLine, width: number, alignment: Alignment = "left"): StyledLine {
  const room = Math.max(0, width - lineWidth(line));
  const before = alignment === "right" ? room : alignment === "center" ? Math.floor(room / 2) : 0;
  return [span(" ".repeat(before)), ...line, span(" ".repeat(room - before))];
}

function listedRows({ header, rows }: Table, columns: number): StyledLine[] {
  return (rows.length === 0 ? [[]] : rows).flatMap((cells, index) => [
    ...(index === 0 ? [] : [[]]),
    ...header.flatMap((name, at) => wrapSpans([...name, span(": "), ...(cells[at] ?? [])], columns)),
  ]);
}
