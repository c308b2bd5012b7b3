import type { CallOutput } from "../model/items.js";
import { joinOutput, outputParts, readStructuredOutput } from "./output-parts.js";

/** Parts of brig's lines that differ in every run. */
const unrepeatable: readonly { name: string; pattern: RegExp; placeholder: string }[] = [
  { name: "chunk ids", pattern: /^Chunk ID: [0-9a-f]{6}$/m, placeholder: "Chunk ID: …" },
  { name: "wall times", pattern: /^Wall time: [\d.]+ seconds$/m, placeholder: "Wall time: … seconds" },
  {
    name: "session ids",
    pattern: /^Process running with session ID \d+$/m,
    placeholder: "Process running with session ID …",
  },
];

/** The first line of a command's output if it timed out. */
const timeout = { name: "times of timeouts", pattern: /^command timed out after \d+ milliseconds$/m };

export interface ComparableOutput {
  text: string;
  /** The kinds of differences that were removed from the text. */
  normalised: string[];
}

/**
 * Normalises random ids and times in brig's own lines; what a command printed stays as it is. `adapt`
 * replaces the directory of the replay by the recorded one.
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
  for (const { name, pattern, placeholder } of unrepeatable) {
    if (!pattern.test(head)) continue;
    head = head.replace(pattern, placeholder);
    normalised.push(name);
  }
  return withoutTimeout(head, parts.body, normalised);
}

function withoutTimeout(head: string, body: string, normalised: string[]): ComparableOutput {
  const [line = ""] = body.split("\n", 1);
  if (!timeout.pattern.test(line)) return { text: joinOutput(head, body), normalised };
  const shown = "command timed out after … milliseconds";
  return {
    text: joinOutput(head, shown + body.slice(line.length)),
    normalised: [...normalised, timeout.name],
  };
}

/** Replaces a directory by another in the paths of a text that name it or something below it. */
export function pathAdapter(from: string, to: string): (text: string) => string {
  if (from === to || from === "/") return (text) => text;
  const name = new RegExp(`(?<![\\w.@+-])${escaped(from)}(?![\\w@+-]|\\.\\w)`, "g");
  return (text) => text.replace(name, () => to);
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
}

export interface LineDifference {
  /** The line number in the recorded output, from 1. */
  line: number;
  /** The first lines from the difference on. */
  recorded: string[];
  replayed: string[];
}

const SHOWN_LINES = 5;

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

export function sortedLines(text: string): string {
  return text.split("\n").toSorted().join("\n");
}
