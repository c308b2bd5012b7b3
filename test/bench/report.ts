import type { Row, Side, Target, Unit } from "./bench.js";
import type { Machine } from "./machine.js";

export interface Measured {
  name: string;
  rows: Row[];
  /** Why there are no rows. */
  failure: string | null;
}

export interface Report {
  machine: Machine;
  isQuick: boolean;
  runtime: string | null;
  benches: Measured[];
}

const head = ["", "", "n", "min", "p10", "median", "p90", "", "ratio", "95 %", "target", ""];

/** One line for each side of each measure, and where the figures come from. */
export function reportAsText(report: Report): string {
  const rows = report.benches.flatMap((bench) => bench.rows);
  const failed = report.benches.filter(({ failure }) => failure !== null);
  return [
    table([head, ...rows.flatMap(lines)]),
    "",
    ...verdict(rows),
    ...failed.map(({ name, failure }) => `${name} failed: ${failure?.split("\n")[0]}`),
    ...(report.isQuick ? ["A quick run: too few samples to be quoted."] : []),
    origin(report.machine),
    "",
  ].join("\n");
}

function lines(row: Row): string[][] {
  const target = row.target ? [describeTarget(row.target), row.isMet ? "met" : "missed"] : ["", ""];
  if (row.kind === "quantity") {
    const shown = row.judged === "median" ? "" : `${row.judged} ${number(row.ours.summary[row.judged])}`;
    return [[row.title, ...sideCells(row.ours, row.unit), shown, "", ...target]];
  }
  const { value, low, high } = row.ratio;
  const interval = `${number(low)} – ${number(high)}`;
  const shown = `${row.judged === "median" ? "" : `${row.judged} `}× ${number(value)}`;
  return [
    [row.title, ...sideCells(row.ours, row.unit), shown, interval, ...target],
    [row.direction, ...sideCells(row.rival, row.unit), "", "", "", ""],
  ];
}

function sideCells({ name, summary }: Side, unit: Unit): string[] {
  const { count, min, p10, median, p90 } = summary;
  return [name, String(count), ...[min, p10, median, p90].map(number), unit];
}

function describeTarget({ kind, value }: Target): string {
  return `${kind === "at-least" ? "≥" : "≤"} ${value}`;
}

/** Three significant digits. */
function number(value: number): string {
  if (value === 0) return "0";
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return value.toFixed(digits);
}

function verdict(rows: Row[]): string[] {
  const judged = rows.filter(({ isMet }) => isMet !== null);
  const met = judged.filter(({ isMet }) => isMet);
  return judged.length === 0 ? [] : [`${met.length} of ${judged.length} targets met.`];
}

function origin({ measuredAt, cpu, cores, kernel, node, engine, runtime, load }: Machine): string {
  return [
    `Measured ${measuredAt} on ${cores} cores (${cpu}), ${kernel}, Node ${node}, ${engine} with ${runtime};`,
    `load ${load.before.toFixed(1)} before, ${load.after.toFixed(1)} after.`,
  ].join("\n");
}

const numberColumns = new Set([2, 3, 4, 5, 6]);

function table(rows: string[][]): string {
  const widths = head.map((_, column) => Math.max(...rows.map((row) => (row[column] ?? "").length)));
  return rows
    .map((row) =>
      row
        .map((cell, column) =>
          numberColumns.has(column) ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0),
        )
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
