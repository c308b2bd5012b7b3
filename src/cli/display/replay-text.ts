import { isSame, type ReplayReport } from "../../agent/replay/replay-session.js";
import { clipped } from "../../output/cut-text.js";

const SHOWN_INPUT_CHARS = 160;
const SHOWN_PATHS = 50;

/** A report for a person. Texts in it are a container's: whoever prints it neutralises them. */
export function describeReplay(report: ReplayReport): string {
  const { calls, differences, skipped, normalised, notes } = report;
  const lines = [
    ...differences.flatMap(differenceLines),
    ...skipped.map(({ step, name, reason }) => `[${step}] ${name}: not run again: ${reason}`),
    ...treeLines(report.tree),
    ...notes,
    normalised.length === 0
      ? "nothing was left out of the comparison"
      : `not compared: ${normalised.join(", ")}`,
    `${isSame(report) ? "the same" : "different"}: ${counted(calls, "call")} run again, ${
      differences.length === 0 ? "no output" : counted(differences.length, "output")
    } different`,
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
    `    from line ${line} on the output is different:`,
    ...recorded.map((text) => `    - ${text}`),
    ...replayed.map((text) => `    + ${text}`),
  ];
}

function treeLines(tree: ReplayReport["tree"]): string[] {
  if (tree.kind === "same") return ["the files are the same in the end"];
  if (tree.kind === "not compared") return [`the files in the end were not compared: ${tree.reason}`];
  const { differences } = tree;
  const hidden = differences.length - SHOWN_PATHS;
  return [
    `${counted(differences.length, "file")} different in the end:`,
    ...differences.slice(0, SHOWN_PATHS).map(({ path, kind }) => `    ${kind} ${path}`),
    ...(hidden > 0 ? [`    and ${hidden} more`] : []),
  ];
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
