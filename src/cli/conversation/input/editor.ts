/** The text a person is writing, and where in it the cursor stands, in UTF-16 units. */
export interface Draft {
  readonly text: string;
  readonly cursor: number;
  /** What was deleted last by the word or line, for `yank`. */
  readonly deleted: string;
}

export const emptyDraft: Draft = { text: "", cursor: 0, deleted: "" };

/** Keys that change a draft or move in it. */
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

/** No grapheme that a person meets is longer, in UTF-16 units. */
const LONGEST_GRAPHEME = 64;

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });

export function draftOf(text: string): Draft {
  return { ...emptyDraft, text, cursor: text.length };
}

export function insertText(draft: Draft, text: string): Draft {
  const { cursor } = draft;
  return {
    ...draft,
    text: draft.text.slice(0, cursor) + text + draft.text.slice(cursor),
    cursor: cursor + text.length,
  };
}

/** Null where the key has nowhere to go: up on the first line, left at the very beginning. */
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
      return kept(without(draft, wordBefore(text, cursor), cursor), draft);
    case "delete-word-right":
      return kept(without(draft, cursor, wordAfter(text, cursor)), draft);
    case "delete-to-start":
      return kept(without(draft, lineStart(text, cursor), cursor), draft);
    case "delete-to-end":
      return kept(without(draft, cursor, lineEnd(text, cursor)), draft);
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

/** Remembers what is gone. */
function kept(draft: Draft, earlier: Draft): Draft {
  const { cursor } = draft;
  const length = earlier.text.length - draft.text.length;
  return length === 0 ? draft : { ...draft, deleted: earlier.text.slice(cursor, cursor + length) };
}

/** Where the grapheme that ends at the cursor begins. */
function before(text: string, cursor: number): number {
  const start = Math.max(0, cursor - LONGEST_GRAPHEME);
  let last = cursor;
  for (const { index } of graphemes.segment(text.slice(start, cursor))) last = start + index;
  return last;
}

/** Where the grapheme that begins at the cursor ends. */
function after(text: string, cursor: number): number {
  for (const { segment } of graphemes.segment(text.slice(cursor, cursor + LONGEST_GRAPHEME)))
    return cursor + segment.length;
  return cursor;
}

function wordBefore(text: string, cursor: number): number {
  return (
    cursor - (/[\p{L}\p{N}_]*[^\p{L}\p{N}_]*$/u.exec(text.slice(lineWindow(cursor), cursor))?.[0].length ?? 0)
  );
}

function wordAfter(text: string, cursor: number): number {
  return (
    cursor + (/^[^\p{L}\p{N}_]*[\p{L}\p{N}_]*/u.exec(text.slice(cursor, cursor + 4096))?.[0].length ?? 0)
  );
}

function lineWindow(cursor: number): number {
  return Math.max(0, cursor - 4096);
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
