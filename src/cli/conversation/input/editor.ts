import { graphemeSegmenter } from "../../../lib/terminal/break-columns.js";
import { type Draft, insertText } from "./draft.js";

export type EditingKey =
  | "newline"
  | "backspace"
  | "delete"
  | "left"
  | "right"
  | "up"
  | "down"
  | "word-left"
  | "word-right"
  | "line-start"
  | "line-end"
  | "delete-word-left"
  | "delete-word-right"
  | "delete-to-start"
  | "delete-to-end"
  | "yank";

/** Real graphemes are shorter than this, in UTF-16 units. */
const LONGEST_GRAPHEME = 64;
/** Words are looked for at most this far from the cursor, in UTF-16 units. */
const LONGEST_WORD = 4096;

/** Returns null when the cursor cannot move: up on the first line, left at the very beginning. */
export function applyEditingKey(draft: Draft, key: EditingKey): Draft | null {
  const { text, cursor } = draft;
  switch (key) {
    case "newline":
      return insertText(draft, "\n");
    case "yank":
      return insertText(draft, draft.deleted);
    case "left":
      return moved(draft, before(text, cursor));
    case "right":
      return moved(draft, after(text, cursor));
    case "word-left":
      return moved(draft, wordBefore(text, cursor));
    case "word-right":
      return moved(draft, wordAfter(text, cursor));
    case "line-start":
      return { ...draft, cursor: lineStart(text, cursor) };
    case "line-end":
      return { ...draft, cursor: lineEnd(text, cursor) };
    case "up":
      return moved(draft, lineAbove(text, cursor));
    case "down":
      return moved(draft, lineBelow(text, cursor));
    case "backspace":
      return without(draft, before(text, cursor), cursor);
    case "delete":
      return without(draft, cursor, after(text, cursor));
    case "delete-word-left":
      return remembered(without(draft, wordBefore(text, cursor), cursor), draft);
    case "delete-word-right":
      return remembered(without(draft, cursor, wordAfter(text, cursor)), draft);
    case "delete-to-start":
      return remembered(without(draft, lineStart(text, cursor), cursor), draft);
    case "delete-to-end":
      return remembered(without(draft, cursor, lineEnd(text, cursor)), draft);
    default:
      return key satisfies never;
  }
}

function moved(draft: Draft, cursor: number | null): Draft | null {
  return cursor === null || cursor === draft.cursor ? null : { ...draft, cursor };
}

function without(draft: Draft, from: number, to: number): Draft {
  return { ...draft, text: draft.text.slice(0, from) + draft.text.slice(to), cursor: from };
}

/** Keeps the text that `draft` lacks of `earlier` for `yank`. */
function remembered(draft: Draft, earlier: Draft): Draft {
  const { cursor } = draft;
  const length = earlier.text.length - draft.text.length;
  return length === 0 ? draft : { ...draft, deleted: earlier.text.slice(cursor, cursor + length) };
}

/** The start of the grapheme that ends at the cursor. */
function before(text: string, cursor: number): number {
  const start = Math.max(0, cursor - LONGEST_GRAPHEME);
  let last = cursor;
  for (const { index } of graphemeSegmenter().segment(text.slice(start, cursor))) last = start + index;
  return last;
}

/** The end of the grapheme that begins at the cursor. */
function after(text: string, cursor: number): number {
  for (const { segment } of graphemeSegmenter().segment(text.slice(cursor, cursor + LONGEST_GRAPHEME)))
    return cursor + segment.length;
  return cursor;
}

/** An element is a word of its own. */
function wordBefore(text: string, cursor: number): number {
  const before = text.slice(Math.max(0, cursor - LONGEST_WORD), cursor);
  return cursor - (/(?:[\p{L}\p{N}_]+|\p{Cs})?[^\p{L}\p{N}_\p{Cs}]*$/u.exec(before)?.[0].length ?? 0);
}

function wordAfter(text: string, cursor: number): number {
  const after = text.slice(cursor, cursor + LONGEST_WORD);
  return cursor + (/^[^\p{L}\p{N}_\p{Cs}]*(?:[\p{L}\p{N}_]+|\p{Cs})?/u.exec(after)?.[0].length ?? 0);
}

function lineStart(text: string, cursor: number): number {
  return cursor === 0 ? 0 : text.lastIndexOf("\n", cursor - 1) + 1;
}

function lineEnd(text: string, cursor: number): number {
  const end = text.indexOf("\n", cursor);
  return end === -1 ? text.length : end;
}

function lineAbove(text: string, cursor: number): number | null {
  const start = lineStart(text, cursor);
  if (start === 0) return null;
  const above = lineStart(text, start - 1);
  return Math.min(above + (cursor - start), start - 1);
}

function lineBelow(text: string, cursor: number): number | null {
  const end = lineEnd(text, cursor);
  if (end === text.length) return null;
  const column = cursor - lineStart(text, cursor);
  return Math.min(end + 1 + column, lineEnd(text, end + 1));
}
