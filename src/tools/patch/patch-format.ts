import { withoutMark } from "../../lib/utf8.js";
import { trim, trimEnd } from "../../lib/white-space.js";

/** The change of one file in a patch of the Begin/End format. Paths are as written. */
export type Hunk =
  | { kind: "add"; path: string; lines: string[] }
  | { kind: "delete"; path: string }
  | { kind: "update"; path: string; moveTo: string | null; chunks: Chunk[] };

/** A place in a file, with its changes. */
export interface Chunk {
  /** The text after `@@ `: a line somewhere before the place. */
  anchor: string | null;
  changes: Change[];
  isAtEnd: boolean;
}

export interface Change {
  kind: "context" | "add" | "remove";
  text: string;
}

export const BEGIN = "*** Begin Patch";
export const END = "*** End Patch";
export const ADD = "*** Add File: ";
export const DELETE = "*** Delete File: ";
export const UPDATE = "*** Update File: ";
export const MOVE = "*** Move to: ";
export const END_OF_FILE = "*** End of File";
const ENVIRONMENT = "*** Environment ID:";
export const ANCHOR = "@@";

/** `reason` has Codex's words, which models know. */
export type ParsedPatch = { kind: "patch"; hunks: Hunk[] } | { kind: "invalid"; reason: string };

/** Reads a patch, which may be inside the rest of a shell heredoc: `<<EOF` … `EOF`. */
export function parsePatch(text: string): ParsedPatch {
  const lines = withoutHeredoc(splitLines(trim(withoutMark(text))));
  try {
    return { kind: "patch", hunks: new PatchReader(lines).read() };
  } catch (error) {
    if (error instanceof InvalidPatch) return { kind: "invalid", reason: error.message };
    throw error;
  }
}

class InvalidPatch extends Error {}

const firstLineReason = `invalid patch: The first line of the patch must be '${BEGIN}'`;
const lastLineReason = `invalid patch: The last line of the patch must be '${END}'`;
const heredocStarts: ReadonlySet<string> = new Set(["<<EOF", "<<'EOF'", '<<"EOF"']);

/** A line ends with LF, CR LF or CR CR LF. */
function splitLines(text: string): string[] {
  if (text === "") return [];
  return text.split("\n").map((line) => line.replace(/\r\r?$/, ""));
}

function withoutHeredoc(lines: string[]): string[] {
  const isWrapped =
    !isEnveloped(lines) &&
    lines.length >= 4 &&
    heredocStarts.has(lines[0] ?? "") &&
    lines.at(-1)?.endsWith("EOF");
  return isWrapped ? lines.slice(1, -1) : lines;
}

function isEnveloped(lines: readonly string[]): boolean {
  return trim(lines[0] ?? "") === BEGIN && trim(lines.at(-1) ?? "") === END;
}

function expectEnvelope(lines: readonly string[]): void {
  if (lines.length > 0 && trim(lines[0] ?? "") !== BEGIN) throw new InvalidPatch(firstLineReason);
  if (trim(lines.at(-1) ?? "") !== END || lines.length < 2) throw new InvalidPatch(lastLineReason);
}

type UpdateHunk = Extract<Hunk, { kind: "update" }>;

/** `#next` is the index of the next line, and so the number, counted from 1, of the last one. */
class PatchReader {
  readonly #lines: readonly string[];
  #next = 0;

  constructor(lines: readonly string[]) {
    expectEnvelope(lines);
    // An indented end marker would be read as a context line of an update.
    this.#lines = [...lines.slice(0, -1), END];
  }

  read(): Hunk[] {
    this.#next = 1;
    this.#skipEnvironment();
    const hunks: Hunk[] = [];
    while (!this.#atHeader(END)) hunks.push(this.#readHunk());
    this.#next++;
    // After an earlier end marker only blank lines are allowed.
    while (this.#next < this.#lines.length - 1) {
      if (trim(this.#take()) !== "") throw new InvalidPatch(lastLineReason);
    }
    return hunks;
  }

  /** The line may name one environment. brig has only one, so the name says nothing. */
  #skipEnvironment(): void {
    for (let count = 1; trim(this.#peek()).startsWith(ENVIRONMENT); count++) {
      if (count > 1)
        throw new InvalidPatch(
          "invalid patch: apply_patch environment_id cannot be specified more than once",
        );
      if (trim(trim(this.#take()).slice(ENVIRONMENT.length)) === "")
        throw new InvalidPatch("invalid patch: apply_patch environment_id cannot be empty");
    }
  }

  #readHunk(): Hunk {
    const header = trim(this.#take());
    if (header.startsWith(ADD))
      return { kind: "add", path: header.slice(ADD.length), lines: this.#readAdded() };
    if (header.startsWith(DELETE)) return { kind: "delete", path: header.slice(DELETE.length) };
    if (header.startsWith(UPDATE)) return this.#readUpdate(header.slice(UPDATE.length));
    throw this.#invalidHere(
      `'${header}' is not a valid hunk header. Valid hunk headers: '${ADD}{path}', '${DELETE}{path}', '${UPDATE}{path}'`,
    );
  }

  #readAdded(): string[] {
    const lines: string[] = [];
    while (this.#peek().startsWith("+")) lines.push(this.#take().slice(1));
    return lines;
  }

  #readUpdate(path: string): UpdateHunk {
    const headerLine = this.#next;
    const moveTo = this.#readMove();
    const chunks: Chunk[] = [];
    while (!this.#atUpdateEnd()) chunks.push(this.#readChunk(chunks.length === 0));
    if (chunks.length === 0) throw invalidHunk(headerLine, `Update file hunk for path '${path}' is empty`);
    return { kind: "update", path, moveTo, chunks };
  }

  /** Ignores end-of-file markers before the first chunk. */
  #readMove(): string | null {
    let moveTo: string | null = null;
    for (;;) {
      const line = trimEnd(this.#peek());
      if (moveTo === null && line.startsWith(MOVE)) moveTo = line.slice(MOVE.length);
      else if (line !== END_OF_FILE) return moveTo;
      this.#next++;
    }
  }

  #readChunk(isFirst: boolean): Chunk {
    const first = trimEnd(this.#peek());
    const hasMarker = first === ANCHOR || first.startsWith(`${ANCHOR} `);
    if (!hasMarker && !isFirst)
      throw this.#invalidNext(
        `Expected update hunk to start with a @@ context marker, got: '${this.#peek()}'`,
      );
    if (hasMarker) this.#next++;
    const anchor = first.startsWith(`${ANCHOR} `) ? first.slice(ANCHOR.length + 1) : null;
    const changes = this.#readChanges();
    if (changes.length === 0) throw this.#noChanges();
    const isAtEnd = trimEnd(this.#peek()) === END_OF_FILE;
    if (isAtEnd) this.#skipEndOfFile();
    return { anchor, changes, isAtEnd };
  }

  /** Also skips the blank lines after the marker, which belong to no chunk. */
  #skipEndOfFile(): void {
    do this.#next++;
    while (trim(this.#peek()) === "");
  }

  #readChanges(): Change[] {
    const changes: Change[] = [];
    for (let change = changeOf(this.#peek()); change !== null; change = changeOf(this.#peek())) {
      changes.push(change);
      this.#next++;
    }
    return changes;
  }

  #noChanges(): InvalidPatch {
    const line = this.#atUpdateEnd() ? trimEnd(this.#peek()) : this.#peek();
    if (line === END || trimEnd(line) === END_OF_FILE)
      return this.#invalidNext("Update hunk does not contain any lines");
    return this.#invalidNext(
      `Unexpected line found in update hunk: '${line}'. Every line should start with ' ' (context line), ` +
        "'+' (added line), or '-' (removed line)",
    );
  }

  /** Inside an update, a header must not be indented. */
  #atUpdateEnd(): boolean {
    const line = trimEnd(this.#peek());
    return line === END || [ADD, DELETE, UPDATE].some((header) => line.startsWith(header));
  }

  #atHeader(header: string): boolean {
    return trim(this.#peek()) === header;
  }

  #peek(): string {
    return this.#lines[this.#next] ?? END;
  }

  #take(): string {
    const line = this.#peek();
    this.#next++;
    return line;
  }

  #invalidHere(reason: string): InvalidPatch {
    return invalidHunk(this.#next, reason);
  }

  #invalidNext(reason: string): InvalidPatch {
    return invalidHunk(this.#next + 1, reason);
  }
}

function changeOf(line: string): Change | null {
  const text = line.slice(1);
  switch (line.charAt(0)) {
    case "":
    case " ":
      return { kind: "context", text };
    case "+":
      return { kind: "add", text };
    case "-":
      return { kind: "remove", text };
    default:
      return null;
  }
}

function invalidHunk(line: number, reason: string): InvalidPatch {
  return new InvalidPatch(`invalid hunk at line ${line}, ${reason}`);
}

/**
 * The format of a patch as a Lark grammar, which the endpoint enforces. It is stricter than the parser and
 * never looser: an update has changes, and so has every anchor.
 */
export const patchGrammar = `start: begin hunk+ end
begin: "${BEGIN}" LF
end: "${END}" LF?

hunk: add | delete | update
add: "${ADD}" path LF added+
delete: "${DELETE}" path LF
update: "${UPDATE}" path LF move? first_chunk chunk* end_of_file?
move: "${MOVE}" path LF

first_chunk: anchor? change+
chunk: anchor change+
anchor: ("${ANCHOR}" | "${ANCHOR} " /(.+)/) LF
change: ("+" | "-" | " ") /(.*)/ LF
added: "+" /(.*)/ LF
end_of_file: "${END_OF_FILE}" LF

path: /(.+)/

%import common.LF
`;
