import { readInstructions } from "./instructions.js";

/** A Dockerfile with another instruction below each `FROM`. */
export interface ExtendedDockerfile {
  text: string;
  /** The number that a line of the text had before, both from 1. */
  originalLine(line: number): number;
}

/** Takes an empty line or a comment's where one follows, so that the numbers of most lines stay the same. */
export function addBelowStages(text: string, instruction: string): ExtendedDockerfile {
  const lines = text.split("\n");
  const added: number[] = [];
  for (const { name, lastLine } of readInstructions(lines).toReversed()) {
    if (name !== "FROM") continue;
    const next = lastLine + 1;
    const isFree = /^\s*(?:#|$)/.test(lines[next] ?? "x");
    lines.splice(next, isFree ? 1 : 0, instruction);
    if (!isFree) added.push(next + 1);
  }
  const before = (line: number) => added.toReversed().filter((at, index) => at + index < line).length;
  return { text: lines.join("\n"), originalLine: (line) => line - before(line) };
}
