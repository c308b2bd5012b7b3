import { withoutMark } from "../../../lib/utf8.js";
import type { DiffLine, FileDiff } from "./diff.js";
import { gitNames, headerName, unquoteName, withoutPrefixes } from "./diff-names.js";

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
