/** One instruction of a Dockerfile. */
export interface Instruction {
  /** Name in capital letters: "FROM". */
  name: string;
  /** The rest, with continued lines joined. */
  text: string;
  /** Numbers of its first and its last line, from 0; a heredoc belongs to it. */
  firstLine: number;
  lastLine: number;
  hasHeredoc: boolean;
}

/** Splits a Dockerfile into its instructions. Comments, empty lines and the contents of heredocs are left out. */
export function readInstructions(lines: readonly string[]): Instruction[] {
  const continuation = escapeOf(lines);
  const instructions: Instruction[] = [];
  for (let at = 0; at < lines.length; ) {
    if (isBlank(lines[at] ?? "")) {
      at += 1;
      continue;
    }
    const instruction = readInstruction(lines, at, continuation);
    instructions.push(instruction);
    at = instruction.lastLine + 1;
  }
  return instructions;
}

function readInstruction(lines: readonly string[], firstLine: number, continuation: string): Instruction {
  const parts: string[] = [];
  let lastLine = firstLine;
  for (let at = firstLine; at < lines.length; at++) {
    const line = lines[at] ?? "";
    // Comments and empty lines inside an instruction do not end it.
    if (at > firstLine && isBlank(line)) continue;
    lastLine = at;
    const trimmed = line.trimEnd();
    if (!trimmed.endsWith(continuation)) {
      parts.push(trimmed);
      break;
    }
    parts.push(trimmed.slice(0, -1));
  }
  const whole = parts.join("").trim();
  const [name = ""] = whole.split(/\s/, 1);
  const text = whole.slice(name.length).trim();
  const heredocEnd = endOfHeredocs(lines, lastLine, text);
  return {
    name: name.toUpperCase(),
    text,
    firstLine,
    lastLine: heredocEnd ?? lastLine,
    hasHeredoc: heredocEnd !== null,
  };
}

function isBlank(line: string): boolean {
  return /^\s*(?:#|$)/.test(line);
}

/** The directive `# escape=` only counts above everything else. */
function escapeOf(lines: readonly string[]): string {
  for (const line of lines) {
    const directive = /^#\s*(\w+)\s*=\s*(\S+)\s*$/.exec(line.replace(/^\uFEFF/, ""));
    if (directive === null) break;
    if (directive[1]?.toLowerCase() === "escape") return directive[2] === "`" ? "`" : "\\";
  }
  return "\\";
}

const heredoc = /^\d*<<(-?)(["']?)([A-Za-z_][\w.]*)\2$/;

/** The line that ends the last heredoc, or null if there is none. */
function endOfHeredocs(lines: readonly string[], lastLine: number, text: string): number | null {
  let end: number | null = null;
  for (const word of text.split(/\s+/)) {
    const [, dash, , delimiter] = heredoc.exec(word) ?? [];
    if (delimiter === undefined) continue;
    const from: number = (end ?? lastLine) + 1;
    const found = lines.findIndex(
      (line, index) =>
        index >= from && (dash === "" ? line : line.replace(/^\t+/, "")).replace(/\r$/, "") === delimiter,
    );
    if (found === -1) break;
    end = found;
  }
  return end;
}
