import { DEFAULT_MODE, type EditText, type FileEdit, fileName } from "../file-edit.js";
import type { DiffHunk, DiffLine, FileDiff } from "./diff.js";
import { besideMark, type Edited } from "./edit-text.js";
import { LineSearch, type Normalise } from "./line-search.js";
import { joinLines, splitAtLineFeeds, type TextLine } from "./text-lines.js";

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
