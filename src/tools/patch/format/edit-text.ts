import { BYTE_ORDER_MARK, withoutMark } from "../../../lib/utf8.js";
import { LineSearch, patchPasses } from "./line-search.js";
import type { Chunk } from "./patch.js";
import { joinLines, splitLines, type TextLine } from "./text-lines.js";

export type Edited = { kind: "text"; text: string } | { kind: "mismatch"; reason: string };

/** Replaces `length` lines of the file from line `start` on. */
interface Replacement {
  start: number;
  length: number;
  lines: string[];
}

/**
 * Applies the chunks of an update. Context lines keep their text. New lines end like the first line of the
 * file, and so does the last line if it had no ending. A byte order mark stays, unless the patch has it, too.
 */
export function applyChunks(text: string, chunks: readonly Chunk[], fileName: string): Edited {
  return besideMark(text, (part) => editLines(part, chunks, fileName));
}

/** Edits a text whose first line begins, for the patch, after the byte order mark or with it. */
export function besideMark(text: string, edit: (part: string) => Edited): Edited {
  const edited = edit(text);
  if (edited.kind === "text" || !text.startsWith(BYTE_ORDER_MARK)) return edited;
  const retried = edit(withoutMark(text));
  return retried.kind === "text" ? { kind: "text", text: BYTE_ORDER_MARK + retried.text } : edited;
}

function editLines(text: string, chunks: readonly Chunk[], fileName: string): Edited {
  const lines = splitLines(text);
  const ending = lines[0]?.ending || "\n";
  const search = new LineSearch(
    lines.map((line) => line.text),
    patchPasses,
  );
  const replacements: Replacement[][] = [];
  let cursor = 0;
  for (const chunk of chunks) {
    if (chunk.anchor !== null) {
      const at = search.find([chunk.anchor], { from: cursor, isAtEnd: false });
      if (at === null) return mismatch(`Failed to find context '${chunk.anchor}' in ${fileName}`);
      cursor = at + 1;
    }
    const block = blockOf(chunk);
    if (block.old.length === 0) {
      const isAnchored = chunk.anchor !== null && !chunk.isAtEnd;
      replacements.push(replacementsOf(block, isAnchored ? cursor : lines.length));
      continue;
    }
    const place = locate(search, block, { from: cursor, isAtEnd: chunk.isAtEnd });
    if (place === null)
      return mismatch(`Failed to find expected lines in ${fileName}:\n${block.old.join("\n")}`);
    replacements.push(replacementsOf(place.block, place.start));
    cursor = place.start + place.block.old.length;
  }
  return { kind: "text", text: joinLines(replace(lines, replacements.flat(), ending)) };
}

function mismatch(reason: string): Edited {
  return { kind: "mismatch", reason };
}

/** The old and new lines of a chunk. Context lines are in both. */
interface Block {
  old: string[];
  new: NewLine[];
}

interface NewLine {
  text: string;
  /** The index in `old` of a context line; null for an added line. */
  keeps: number | null;
}

function blockOf({ changes }: Chunk): Block {
  const block: Block = { old: [], new: [] };
  for (const { kind, text } of changes) {
    if (kind !== "remove") block.new.push({ text, keeps: kind === "context" ? block.old.length : null });
    if (kind !== "add") block.old.push(text);
  }
  return block;
}

/** Also tries without a last empty line, which may only separate two chunks in the patch. */
function locate(
  search: LineSearch,
  block: Block,
  range: { from: number; isAtEnd: boolean },
): { start: number; block: Block } | null {
  const start = search.find(block.old, range);
  if (start !== null) return { start, block };
  if (block.old.at(-1) !== "") return null;
  const shorter = withoutLastEmptyLine(block);
  const retried = search.find(shorter.old, range);
  return retried === null ? null : { start: retried, block: shorter };
}

function withoutLastEmptyLine(block: Block): Block {
  const old = block.old.slice(0, -1);
  const kept = block.new.at(-1)?.text === "" ? block.new.slice(0, -1) : block.new;
  return {
    old,
    new: kept.map(({ text, keeps }) => ({
      text,
      keeps: keeps !== null && keeps < old.length ? keeps : null,
    })),
  };
}

/** Returns one replacement for each range between context lines. */
function replacementsOf(block: Block, start: number): Replacement[] {
  const replacements: Replacement[] = [];
  let at = 0;
  let lines: string[] = [];
  const replaceUpTo = (end: number) => {
    if (end > at || lines.length > 0) replacements.push({ start: start + at, length: end - at, lines });
    lines = [];
  };
  for (const { text, keeps } of block.new) {
    if (keeps === null) {
      lines.push(text);
      continue;
    }
    replaceUpTo(keeps);
    at = keeps + 1;
  }
  replaceUpTo(block.old.length);
  return replacements;
}

/** Sorts the replacements first, since any chunk may add lines at the end. The sort is stable. */
function replace(
  lines: readonly TextLine[],
  replacements: readonly Replacement[],
  ending: string,
): TextLine[] {
  const result: TextLine[] = [];
  let copied = 0;
  const copyUpTo = (end: number) => {
    for (const line of lines.slice(copied, end)) result.push(line.ending === "" ? { ...line, ending } : line);
  };
  for (const { start, length, lines: added } of replacements.toSorted((a, b) => a.start - b.start)) {
    copyUpTo(start);
    for (const text of added) result.push({ text, ending });
    copied = start + length;
  }
  copyUpTo(lines.length);
  return result;
}
