import type { ReplayReport } from "../../agent/index.js";
import { isSame } from "../../agent/index.js";
import { clipped } from "../../sandbox/index.js";
import { plural } from "../conversation/screen/styled-line.js";

const SHOWN_INPUT_CHARS = 160;
const SHOWN_PATHS = 50;

/** A report for a person. It has text from the container, so neutralise it before you print it. */
export function describeReplay(report: ReplayReport): string {
  const { calls, differences, skipped, normalised, notes } = report;
  const lines = [
    ...differences.flatMap(differenceLines),
    ...skipped.map(({ step, name, reason }) => `[${step}] ${name}: not run again: ${reason}`),
    ...treeLines(report.tree),
    ...notes,
    normalised.length === 0 ? "everything was compared" : `not compared: ${normalised.join(", ")}`,
    `${isSame(report) ? "the same" : "different"}: ${plural(calls, "call")} run again, ${
      differences.length === 0 ? "no output differs" : `${plural(differences.length, "output")} differ`
    }`,
  ];
  return `${lines.join("\n")}\n`;
}

function differenceLines({
  step,
  name,
  input,
  line,
  recorded,
  replayed,
}: ReplayReport["differences"][number]): string[] {
  return [
    `[${step}] ${name} ${clipped(input, SHOWN_INPUT_CHARS).replace(/\s+/g, " ")}`,
    `    the output differs from line ${line} on:`,
    ...recorded.map((text) => `    - ${text}`),
    ...replayed.map((text) => `    + ${text}`),
  ];
}

function treeLines(tree: ReplayReport["tree"]): string[] {
  if (tree.kind === "same") return ["the final files are the same"];
  if (tree.kind === "not compared") return [`the final files were not compared: ${tree.reason}`];
  const { differences } = tree;
  const hidden = differences.length - SHOWN_PATHS;
  return [
    `${plural(differences.length, "final file")} differ:`,
    ...differences.slice(0, SHOWN_PATHS).map(({ path, kind }) => `    ${kind} ${path}`),
    ...(hidden > 0 ? [`    and ${hidden} more`] : []),
  ];
}
