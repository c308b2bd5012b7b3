import type { CallOutput } from "../../model/items.js";
import { joinOutput, outputParts } from "./output-parts.js";
import { readStructuredOutput } from "./structured-output.js";

/** What cannot come out the same twice, and so is not compared. */
const unrepeatable: readonly { name: string; pattern: RegExp; stand: string }[] = [
  { name: "chunk ids", pattern: /^Chunk ID: [0-9a-f]{6}$/m, stand: "Chunk ID: …" },
  { name: "wall times", pattern: /^Wall time: [\d.]+ seconds$/m, stand: "Wall time: … seconds" },
  {
    name: "session ids",
    pattern: /^Process running with session ID \d+$/m,
    stand: "Process running with session ID …",
  },
];

/** How long a command ran until it was ended, in the first line of its output. */
const timeout = { name: "times of timeouts", pattern: /^command timed out after \d+ milliseconds$/m };

/** An output in which only what is repeatable is left, and the names of what was taken out. */
export interface ComparableOutput {
  text: string;
  normalised: string[];
}

/**
 * Only what brig itself says of a call is normalised, and of that only what is random or a time: what a command printed is compared as
 * it is. `adapt` puts the recorded directory in place of another.
 */
export function comparable(output: CallOutput, adapt: (text: string) => string): ComparableOutput {
  if (typeof output === "string") return comparableText(output, adapt);
  const parts = output.map((part) =>
    part.type === "input_text"
      ? comparableText(part.text, adapt)
      : { text: `(a picture: ${part.image_url})`, normalised: [] },
  );
  return {
    text: parts.map(({ text }) => text).join("\n"),
    normalised: parts.flatMap(({ normalised }) => normalised),
  };
}

function comparableText(output: string, adapt: (text: string) => string): ComparableOutput {
  const adapted = adapt(output);
  const normalised = adapted === output ? [] : ["the workspace's path"];
  const structured = readStructuredOutput(adapted);
  if (structured !== null) {
    const { text, exitCode } = structured;
    return withoutTimeout(`Exit code: ${exitCode}`, text, [...normalised, "durations"]);
  }
  const parts = outputParts(adapted);
  if (parts === null) return { text: adapted, normalised };
  let { head } = parts;
  for (const { name, pattern, stand } of unrepeatable) {
    if (!pattern.test(head)) continue;
    head = head.replace(pattern, stand);
    normalised.push(name);
  }
  return withoutTimeout(head, parts.body, normalised);
}

/** The line of a timeout is the first of the output. */
function withoutTimeout(head: string, body: string, normalised: string[]): ComparableOutput {
  const [line = ""] = body.split("\n", 1);
  if (!timeout.pattern.test(line)) return { text: joinOutput(head, body), normalised };
  const shown = "command timed out after … milliseconds";
  return {
    text: joinOutput(head, shown + body.slice(line.length)),
    normalised: [...normalised, timeout.name],
  };
}

/** Puts one directory in the place of another, where a path names it or something below it. */
export function pathAdapter(from: string, to: string): (text: string) => string {
  if (from === to || from === "/") return (text) => text;
  const name = new RegExp(`(?<![\\w.@+-])${escaped(from)}(?![\\w@+-]|\\.\\w)`, "g");
  return (text) => text.replace(name, () => to);
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
}

export interface LineDifference {
  /** From 1, in the recorded output. */
  line: number;
  /** Some lines of each, from the first that is different. */
  recorded: string[];
  replayed: string[];
}

const SHOWN_LINES = 5;

/** Where two texts start to differ. */
export function firstDifference(recorded: string, replayed: string): LineDifference {
  const [before, after] = [recorded.split("\n"), replayed.split("\n")];
  let line = 0;
  while (line < before.length && before[line] === after[line]) line++;
  return {
    line: line + 1,
    recorded: before.slice(line, line + SHOWN_LINES),
    replayed: after.slice(line, line + SHOWN_LINES),
  };
}

/** Lines whose order depends on when files were changed last, which no record of a session keeps. */
export function sortedLines(text: string): string {
  return text.split("\n").toSorted().join("\n");
}
