import { withoutMark } from "../../lib/utf8.js";
import { DEFAULT_MODE, type EditText, type FileEdit, fileName } from "./apply-edits.js";
import {
  besideMark,
  type Edited,
  joinLines,
  LineSearch,
  type Normalise,
  splitAtLineFeeds,
  type TextLine,
} from "./edit-text.js";

/** The part of a unified diff about one file. */
export interface FileDiff {
  oldName: string | null;
  newName: string | null;
  /** Otherwise two different names are those of two versions of the same file. */
  isRename: boolean;
  mode: number | null;
  hunks: DiffHunk[];
}

export interface DiffHunk {
  /** The line number in the header, counted from 1; null if there is none. */
  oldStart: number | null;
  lines: DiffLine[];
}

interface DiffLine {
  kind: "context" | "add" | "remove";
  text: string;
  /** Whether this is the last line of a file that does not end with a newline. */
  isUnended: boolean;
}

export type ParsedDiff = { kind: "diff"; files: FileDiff[] } | { kind: "invalid"; reason: string };

export function looksLikeDiff(text: string): boolean {
  return /^(?:diff --git |--- |\+\+\+ |@@ )/m.test(withoutMark(text));
}

/**
 * Reads a unified diff, and skips text around it. Models miscount, so the line counts of the hunks are only
 * used if all of them are right; otherwise a hunk ends at the next header.
 */
export function parseDiff(text: string): ParsedDiff {
  const lines = splitLines(text);
  try {
    return { kind: "diff", files: new DiffReader(lines, { believesCounts: true }).read() };
  } catch (error) {
    if (!(error instanceof InvalidDiff)) throw error;
  }
  try {
    return { kind: "diff", files: new DiffReader(lines, { believesCounts: false }).read() };
  } catch (error) {
    if (error instanceof InvalidDiff) return { kind: "invalid", reason: error.message };
    throw error;
  }
}

class InvalidDiff extends Error {}

/** If the headers end with CR, line endings were converted: CRs are removed. Otherwise a CR is content. */
function splitLines(text: string): string[] {
  const lines = withoutMark(text).split("\n");
  if (lines.at(-1) === "") lines.pop();
  const isSentWithReturns = lines.some((line) => /^(?:--- .*|@@ .*)\r$/.test(line));
  return isSentWithReturns ? lines.map((line) => line.replace(/\r$/, "")) : lines;
}

interface Section extends FileDiff {
  /** Starts with `diff --git`. May have no hunks, and names with prefixes other than `a/` and `b/`. */
  isGit: boolean;
  changesMode: boolean;
}

const hunkHeader = /^@@(?: -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@.*| .*|)$/;

class DiffReader {
  readonly #lines: readonly string[];
  readonly #believesCounts: boolean;
  #next = 0;
  #section: Section | null = null;
  readonly #files: FileDiff[] = [];

  constructor(lines: readonly string[], { believesCounts }: { believesCounts: boolean }) {
    this.#lines = lines;
    this.#believesCounts = believesCounts;
  }

  read(): FileDiff[] {
    while (this.#next < this.#lines.length) this.#readLine();
    this.#finishSection();
    if (this.#files.length === 0) throw new InvalidDiff("the diff names no file");
    return this.#files;
  }

  #readLine(): void {
    const line = this.#peek();
    if (this.#atSignature()) {
      this.#finishSection();
      this.#next++;
    } else if (line.startsWith("diff --git ")) this.#startGitSection(line);
    else if (this.#atNames()) this.#readNames();
    else if (line.startsWith("@@")) this.#readHunk();
    else if (binaryNote.test(line)) throw this.#invalid("binary changes are not supported");
    else if (this.#section?.isGit && this.#section.hunks.length === 0) this.#readExtendedHeader(line);
    else if (/^[ +-]/.test(line) && this.#section !== null)
      throw this.#invalid("a line that belongs to no hunk");
    else this.#next++;
  }

  #startGitSection(line: string): void {
    this.#finishSection();
    const [oldName, newName] = gitNames(line.slice("diff --git ".length));
    this.#section = { ...emptySection, hunks: [], oldName, newName, isGit: true };
    this.#next++;
  }

  #readExtendedHeader(line: string): void {
    const section = this.#section;
    if (section === null) return;
    const [, kind = "", value = ""] = extendedHeader.exec(line) ?? [];
    switch (kind) {
      case "rename from":
      case "rename to":
        section.isRename = true;
        if (kind === "rename from") section.oldName = unquoteName(value);
        else section.newName = unquoteName(value);
        break;
      case "new file mode":
        if (!value.startsWith("100")) throw this.#invalid("links and submodules are not supported");
        section.oldName = null;
        section.mode = Number.parseInt(value, 8) & 0o777;
        break;
      case "deleted file mode":
        section.newName = null;
        break;
      case "old mode":
      case "new mode":
        section.changesMode = true;
        break;
      case "copy from":
      case "copy to":
        throw this.#invalid("copies are not supported");
      default:
        break;
    }
    this.#next++;
  }

  #atNames(): boolean {
    return this.#peek().startsWith("--- ") && (this.#lines[this.#next + 1] ?? "").startsWith("+++ ");
  }

  #readNames(): void {
    const section = this.#section?.isGit && this.#section.hunks.length === 0 ? this.#section : null;
    if (section === null) this.#finishSection();
    const oldName = headerName(this.#peek());
    const newName = headerName(this.#lines[this.#next + 1] ?? "");
    this.#next += 2;
    const [oldBare, newBare] = withoutPrefixes(oldName, newName, { isGit: section !== null });
    if (section?.isRename) return;
    this.#section = { ...(section ?? { ...emptySection, hunks: [] }), oldName: oldBare, newName: newBare };
    // Different names mean a rename if they have git's prefixes; else they are those of `diff -u old new`.
    if (oldBare !== oldName && newBare !== newName && oldBare !== null && newBare !== null)
      this.#section.isRename = oldBare !== newBare;
  }

  #readHunk(): void {
    const header = hunkHeader.exec(this.#peek());
    if (header === null) throw this.#invalid("not a hunk header");
    if (this.#section === null) throw this.#invalid("a hunk without a file");
    const [, oldStart, oldCount = "1", , newCount = "1"] = header;
    this.#next++;
    const counts = { old: Number(oldCount), new: Number(newCount) };
    const lines =
      oldStart !== undefined && this.#believesCounts ? this.#readCounted(counts) : this.#readToHeader();
    if (lines.length === 0) throw this.#invalid("a hunk without lines");
    this.#section.hunks.push({ oldStart: oldStart === undefined ? null : Number(oldStart), lines });
  }

  #readCounted(counts: { old: number; new: number }): DiffLine[] {
    const lines: DiffLine[] = [];
    const left = { ...counts };
    while (left.old > 0 || left.new > 0) {
      const line = this.#readChange();
      if (line === null) throw this.#invalid("a hunk that is too short");
      if (line.kind !== "add") left.old--;
      if (line.kind !== "remove") left.new--;
      lines.push(line);
    }
    if (left.old < 0 || left.new < 0) throw this.#invalid("a hunk that is too long");
    return lines;
  }

  #readToHeader(): DiffLine[] {
    const lines: DiffLine[] = [];
    while (!this.#atHeader() && !this.#atSignature()) {
      const line = this.#readChange();
      if (line === null) throw this.#invalid("a line that starts with none of ' ', '+', '-'");
      lines.push(line);
    }
    // Blank lines at the end are not context: they separate files or end the text.
    while (lines.at(-1)?.kind === "context" && lines.at(-1)?.text === "") lines.pop();
    return lines;
  }

  #readChange(): DiffLine | null {
    if (this.#next >= this.#lines.length) return null;
    const line = this.#peek();
    const kind = changeKinds[line.charAt(0)];
    if (kind === undefined) return null;
    this.#next++;
    const isUnended = this.#peek().startsWith("\\ ");
    if (isUnended) this.#next++;
    return { kind, text: line.slice(1), isUnended };
  }

  #atHeader(): boolean {
    const line = this.#peek();
    return (
      this.#next >= this.#lines.length ||
      line.startsWith("@@") ||
      line.startsWith("diff --git ") ||
      this.#atNames()
    );
  }

  /** The end of a mailed patch: `-- ` and the version of git. */
  #atSignature(): boolean {
    return this.#peek() === "-- " && /^\d+\.\d/.test(this.#lines[this.#next + 1] ?? "");
  }

  #finishSection(): void {
    const section = this.#section;
    this.#section = null;
    if (section === null) return;
    const { isGit, changesMode, ...file } = section;
    if (changesMode) throw this.#invalid("a change of a file's mode is not supported");
    if (file.oldName === null && file.newName === null) throw this.#invalid("a file without a name");
    const isMeantEmpty = isGit && (file.isRename || file.oldName === null || file.newName === null);
    if (file.hunks.length === 0 && !isMeantEmpty) throw this.#invalid("a file without hunks");
    this.#files.push(file);
  }

  #peek(): string {
    return this.#lines[this.#next] ?? "";
  }

  #invalid(reason: string): InvalidDiff {
    const number = Math.min(this.#next + 1, this.#lines.length);
    return new InvalidDiff(`invalid diff at line ${number}: ${reason}`);
  }
}

const emptySection: Omit<Section, "hunks"> = {
  oldName: null,
  newName: null,
  isRename: false,
  mode: null,
  isGit: false,
  changesMode: false,
};

const extendedHeader =
  /^(rename from|rename to|new file mode|deleted file mode|old mode|new mode|copy from|copy to) (.*)$/;

const binaryNote = /^(?:GIT binary patch|Binary files .* differ)$/;

const changeKinds: Readonly<Record<string, DiffLine["kind"] | undefined>> = {
  "": "context",
  " ": "context",
  "+": "add",
  "-": "remove",
};

/** The name in a `---` or `+++` line; null for `/dev/null`. A tab and a time may follow it. */
function headerName(line: string): string | null {
  const rest = line.slice("--- ".length);
  const name = rest.startsWith('"') ? unquoteName(rest) : (rest.split("\t")[0] ?? "").trimEnd();
  return name === "/dev/null" ? null : name;
}

/** The names of `diff --git a/NAME b/NAME`. Names may contain spaces, so only equal names are certain. */
function gitNames(rest: string): [oldName: string | null, newName: string | null] {
  const quoted = /^("(?:[^"\\]|\\.)*") (".*")$/.exec(rest);
  const half = (rest.length - 1) / 2;
  const [oldName, newName] = quoted
    ? [unquoteName(quoted[1] ?? ""), unquoteName(quoted[2] ?? "")]
    : [rest.slice(0, half), rest.slice(half + 1)];
  const [oldBare, newBare] = withoutPrefixes(oldName, newName, { isGit: true });
  return oldBare === newBare ? [oldBare, newBare] : [null, null];
}

/** Removes `a/` and `b/` if both names have them. Git also uses i(ndex), w(orktree), c(ommit), o(bject). */
function withoutPrefixes(
  oldName: string | null,
  newName: string | null,
  { isGit }: { isGit: boolean },
): [oldName: string | null, newName: string | null] {
  const [oldPrefix, newPrefix] = isGit ? [/^[aciow12]\//, /^[bciow12]\//] : [/^a\//, /^b\//];
  const isPrefixed =
    (oldName === null || oldPrefix.test(oldName)) && (newName === null || newPrefix.test(newName));
  return isPrefixed ? [oldName?.slice(2) ?? null, newName?.slice(2) ?? null] : [oldName, newName];
}

const escapes: Readonly<Record<string, number | undefined>> = {
  a: 7,
  b: 8,
  t: 9,
  n: 10,
  v: 11,
  f: 12,
  r: 13,
};

/** Undoes the quoting of git, which escapes bytes. Returns a name without quotes as it is. */
function unquoteName(text: string): string {
  if (!text.startsWith('"')) return text;
  const pieces: Buffer[] = [];
  for (const { 0: piece } of text.slice(1).matchAll(/\\[0-7]{3}|\\.|[^"\\]+|"/g)) {
    if (piece === '"') break;
    pieces.push(unescaped(piece));
  }
  return Buffer.concat(pieces).toString("utf8");
}

function unescaped(piece: string): Buffer {
  if (!piece.startsWith("\\")) return Buffer.from(piece);
  const byte = piece.length === 4 ? Number.parseInt(piece.slice(1), 8) & 0xff : escapes[piece.slice(1)];
  return byte === undefined ? Buffer.from(piece.slice(1)) : Buffer.of(byte);
}

export function editsOfDiff(files: readonly FileDiff[], cwd: string): FileEdit[] {
  return files.map((file) => editOfFile(file, cwd));
}

function editOfFile({ oldName, newName, isRename, mode, hunks }: FileDiff, cwd: string): FileEdit {
  const edit: EditText = (text, name) => besideMark(text, (part) => applyHunks(part, hunks, name));
  if (newName === null) return { kind: "delete", file: fileName(oldName ?? "", cwd), edit };
  const file = fileName(newName, cwd);
  if (oldName === null) {
    const lines = hunks.flatMap((hunk) => hunk.lines).filter(({ kind }) => kind !== "remove");
    const text = joinLines(terminated(lines.map((line) => newLine(line, identity))));
    return { kind: "add", file, text, mode: mode ?? DEFAULT_MODE, mustBeNew: true };
  }
  if (!isRename) return { kind: "update", file, moveTo: null, mustBeNew: false, edit };
  return { kind: "update", file: fileName(oldName, cwd), moveTo: file, mustBeNew: true, edit };
}

const identity: Normalise = (line) => line;
const withReturn: Normalise = (line) => (line.endsWith("\r") ? line : `${line}\r`);
const withoutReturn: Normalise = (line) => (line.endsWith("\r") ? line.slice(0, -1) : line);

const passes = [identity, withoutReturn];

/**
 * Applies hunks in order. Each goes to the place nearest to the line in its header that has its old lines.
 * They must match exactly, except for a CR at their ends; if that differs, new lines end like the first line
 * of the file.
 */
export function applyHunks(text: string, hunks: readonly DiffHunk[], name: string): Edited {
  const lines = splitAtLineFeeds(text);
  const search = new LineSearch(
    lines.map((line) => line.text),
    passes,
  );
  const isCrlf = lines[0]?.text.endsWith("\r") ?? false;
  const result: TextLine[] = [];
  let copied = 0;
  let shift = 0;
  const copyUpTo = (end: number) => {
    for (const line of lines.slice(copied, end)) result.push(line);
    copied = end;
  };
  for (const hunk of hunks) {
    const place = locate(search, hunk, { from: copied, shift, end: lines.length, isCrlf });
    if (place === null) return mismatch(hunk, name);
    shift = place.shift;
    copyUpTo(place.at);
    for (const line of hunk.lines) {
      if (line.kind === "add") result.push(newLine(line, place.adapt));
      else if (line.kind === "context") copyUpTo(copied + 1);
      else copied++;
    }
  }
  copyUpTo(lines.length);
  return { kind: "text", text: joinLines(terminated(result)) };
}

interface Place {
  at: number;
  /** The distance from the line in the header. Later hunks are expected at the same distance. */
  shift: number;
  /** Adapts the ending of a new line to the lines around it. */
  adapt: Normalise;
}

function locate(
  search: LineSearch,
  hunk: DiffHunk,
  { from, shift, end, isCrlf }: { from: number; shift: number; end: number; isCrlf: boolean },
): Place | null {
  const old = hunk.lines.filter(({ kind }) => kind !== "add");
  const stated = statedPlace(hunk, old.length);
  if (old.length === 0) {
    const at = stated === null ? end : stated + shift;
    return at < from || at > end ? null : { at, shift, adapt: isCrlf ? withReturn : identity };
  }
  const expected = stated === null ? from : stated + shift;
  const endsFile = old.some(({ isUnended }) => isUnended);
  const found = search.findNear(
    old.map(({ text }) => text),
    { from, near: endsFile ? end - old.length : expected },
  );
  if (found === null) return null;
  return {
    at: found.at,
    shift: stated === null ? shift : found.at - stated,
    adapt: found.pass === 0 ? identity : isCrlf ? withReturn : withoutReturn,
  };
}

/** The index of the line in the hunk's header, which is the line before if the hunk only adds lines. */
function statedPlace({ oldStart }: DiffHunk, oldCount: number): number | null {
  if (oldStart === null) return null;
  return oldCount === 0 ? oldStart : Math.max(oldStart - 1, 0);
}

function mismatch({ lines }: DiffHunk, name: string): Edited {
  const old = lines.filter(({ kind }) => kind !== "add").map(({ text }) => text);
  return { kind: "mismatch", reason: `Failed to find expected lines in ${name}:\n${old.join("\n")}` };
}

function newLine({ text, isUnended }: DiffLine, normalise: Normalise): TextLine {
  return isUnended ? { text, ending: "" } : { text: normalise(text), ending: "\n" };
}

/** Only the last line may have no ending. */
function terminated(lines: readonly TextLine[]): TextLine[] {
  return lines.map((line, index) =>
    line.ending === "" && index < lines.length - 1 ? { ...line, ending: "\n" } : line,
  );
}
