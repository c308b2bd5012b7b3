import { BYTE_ORDER_MARK, withoutMark } from "../../lib/utf8.js";
import { trim, trimEnd } from "../../lib/white-space.js";
import type { Chunk } from "./patch-format.js";

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

export interface TextLine {
  text: string;
  /** Empty only for a last line without an ending. */
  ending: string;
}

/** Splits after LF, CRLF and CR. A final ending adds no empty line. */
function splitLines(text: string): TextLine[] {
  return split(text, /\r\n|\n|\r/g);
}

/** Splits after LF alone: a CR stays in its line. */
export function splitAtLineFeeds(text: string): TextLine[] {
  return split(text, /\n/g);
}

export function joinLines(lines: readonly TextLine[]): string {
  return lines.map(({ text, ending }) => text + ending).join("");
}

function split(text: string, endings: RegExp): TextLine[] {
  const lines: TextLine[] = [];
  let start = 0;
  for (const { 0: ending, index } of text.matchAll(endings)) {
    lines.push({ text: text.slice(start, index), ending });
    start = index + ending.length;
  }
  if (start < text.length) lines.push({ text: text.slice(start), ending: "" });
  return lines;
}

interface SearchRange {
  from: number;
  isAtEnd: boolean;
}

/** Two lines match if this is the same for both. */
export type Normalise = (line: string) => string;

/** From strict to lax. A strict match anywhere wins over a lax one before it. */
const patchPasses: readonly Normalise[] = [
  (line) => line,
  trimEnd,
  trim,
  (line) => foldPunctuation(trim(line)),
];

/** Finds blocks of lines in a file. Each search takes linear time. */
export class LineSearch {
  readonly #lines: readonly string[];
  readonly #passes: readonly LinePass[];

  constructor(lines: readonly string[], passes: readonly Normalise[]) {
    this.#lines = lines;
    this.#passes = passes.map((normalise) => new LinePass(lines, normalise));
  }

  /** Returns the index of the first line of the block, or null. An empty block is at `from`. */
  find(block: readonly string[], { from, isAtEnd }: SearchRange): number | null {
    if (block.length === 0) return from;
    const start = isAtEnd ? Math.max(from, this.#lines.length - block.length) : from;
    if (start + block.length > this.#lines.length) return null;
    for (const pass of this.#passes) {
      const [found] = pass.matches(block, start);
      if (found !== undefined) return found;
    }
    return null;
  }

  /** Returns the match nearest to `near`, by the strictest pass that has any, and the index of that pass. */
  findNear(
    block: readonly string[],
    { from, near }: { from: number; near: number },
  ): { at: number; pass: number } | null {
    for (const [number, pass] of this.#passes.entries()) {
      const at = nearest(pass.matches(block, from), near);
      if (at !== null) return { at, pass: number };
    }
    return null;
  }
}

function nearest(places: Iterable<number>, wanted: number): number | null {
  let best: number | null = null;
  for (const place of places) {
    if (best !== null && Math.abs(place - wanted) >= Math.abs(best - wanted)) break;
    best = place;
  }
  return best;
}

/** Searches with one way to compare lines. Equal lines get equal numbers, so that comparisons are fast. */
class LinePass {
  readonly #lines: readonly string[];
  readonly #normalise: Normalise;
  #indexed: { numbers: ReadonlyMap<string, number>; file: Int32Array } | null = null;

  constructor(lines: readonly string[], normalise: Normalise) {
    this.#lines = lines;
    this.#normalise = normalise;
  }

  /** All matches from `from` on, in order, by the algorithm of Knuth, Morris and Pratt. */
  *matches(block: readonly string[], from: number): Generator<number> {
    const { numbers, file } = this.#index();
    const wanted = Int32Array.from(block, (line) => numbers.get(this.#normalise(line)) ?? -1);
    if (wanted.length === 0 || wanted.includes(-1)) return;
    const fallback = borders(wanted);
    let matched = 0;
    for (let at = from; at < file.length; at++) {
      while (matched > 0 && (matched === wanted.length || wanted[matched] !== file[at]))
        matched = fallback[matched - 1] ?? 0;
      if (wanted[matched] === file[at]) matched++;
      if (matched === wanted.length) yield at + 1 - matched;
    }
  }

  #index() {
    if (this.#indexed !== null) return this.#indexed;
    const numbers = new Map<string, number>();
    const file = Int32Array.from(this.#lines, (line) => {
      const normal = this.#normalise(line);
      const number = numbers.get(normal) ?? numbers.size;
      numbers.set(normal, number);
      return number;
    });
    this.#indexed = { numbers, file };
    return this.#indexed;
  }
}

/** For each prefix, the length of its longest proper prefix that is also its suffix. */
function borders(wanted: Int32Array): Int32Array {
  const lengths = new Int32Array(wanted.length);
  let length = 0;
  for (let at = 1; at < wanted.length; at++) {
    while (length > 0 && wanted[length] !== wanted[at]) length = lengths[length - 1] ?? 0;
    if (wanted[length] === wanted[at]) length++;
    lengths[at] = length;
  }
  return lengths;
}

/** Replaces typographic dashes, quotes and spaces by ASCII characters. */
function foldPunctuation(line: string): string {
  return line
    .replace(/[\u2010-\u2015\u2212]/g, "-")
    .replace(/[\u2018-\u201b]/g, "'")
    .replace(/[\u201c-\u201f]/g, '"')
    .replace(/[\u00a0\u2002-\u200a\u202f\u205f\u3000]/g, " ");
}
