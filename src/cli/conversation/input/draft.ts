/** A piece of a draft that is shown as its label, and moved over and deleted as one. */
export type DraftElement =
  | { kind: "paste"; text: string; label: string; number: number }
  | { kind: "picture"; path: string; label: string };

export interface Draft {
  /** An element is one character of it: a surrogate without its partner, which cannot be typed or pasted. */
  readonly text: string;
  /** An index into `text`, in UTF-16 units. */
  readonly cursor: number;
  /** The word or line that was deleted last, for `yank`. */
  readonly deleted: string;
  /** What the surrogates in `text` and `deleted` stand for; the first one stands for the first element. */
  readonly elements: readonly DraftElement[];
}

export const emptyDraft: Draft = { text: "", cursor: 0, deleted: "", elements: [] };

const FIRST_MARK = 0xd800;
/** There are so many high surrogates. Further pastes are text as if it were typed. */
const MAX_ELEMENTS = 0x400;

/** Pastes that are longer are folded. */
const SHOWN_PASTE_LINES = 5;
const SHOWN_PASTE_CHARS = 1000;

const lone = /\p{Cs}/gu;

export function draftOf(text: string): Draft {
  const safe = text.replaceAll(lone, "\ufffd");
  return { ...emptyDraft, text: safe, cursor: safe.length };
}

/** For text without elements, and for what was deleted from the same draft. */
export function insertText(draft: Draft, text: string): Draft {
  const { cursor } = draft;
  return {
    ...draft,
    text: draft.text.slice(0, cursor) + text + draft.text.slice(cursor),
    cursor: cursor + text.length,
  };
}

/** A long text becomes an element. */
export function insertPaste(draft: Draft, pasted: string): Draft {
  const text = pasted.replaceAll(lone, "\ufffd");
  const lines = text.replace(/\n$/, "").split("\n").length;
  const isShort = lines <= SHOWN_PASTE_LINES && text.length <= SHOWN_PASTE_CHARS;
  if (isShort || draft.elements.length >= MAX_ELEMENTS) return insertText(draft, text);
  const number = 1 + Math.max(0, ...elementsIn(draft).map((one) => (one.kind === "paste" ? one.number : 0)));
  const size = lines > 1 ? `${lines} lines` : `${text.length} characters`;
  const label = `[${size} pasted${number === 1 ? "" : ` #${number}`}]`;
  return insertElement(draft, { kind: "paste", text, label, number });
}

export function insertPicture(draft: Draft, picture: DraftElement & { kind: "picture" }): Draft {
  if (draft.elements.length >= MAX_ELEMENTS) return insertText(draft, quotedPath(picture.path));
  return insertElement(draft, picture);
}

function insertElement(draft: Draft, element: DraftElement): Draft {
  const mark = String.fromCharCode(FIRST_MARK + draft.elements.length);
  return { ...insertText(draft, mark), elements: [...draft.elements, element] };
}

/** Several drafts as one, with a line for each. */
export function joinedDraft(drafts: readonly Draft[]): Draft {
  return drafts
    .filter(({ text }) => text !== "")
    .reduce(
      (joined, draft, index) => appended(index === 0 ? joined : insertText(joined, "\n"), draft),
      emptyDraft,
    );
}

function appended(draft: Draft, more: Draft): Draft {
  let longer = draft;
  for (const piece of piecesOf(more)) {
    if (typeof piece === "string") longer = insertText(longer, piece);
    else if (piece.kind === "paste") longer = insertPaste(longer, piece.text);
    else longer = insertPicture(longer, piece);
  }
  return longer;
}

/** The text that the model gets. */
export function sentText(draft: Draft): string {
  return textOf(draft, (element) => (element.kind === "paste" ? element.text : element.label));
}

/** The text as it stands in the draft, with a label for each element. */
export function shownText(draft: Draft): string {
  return textOf(draft, ({ label }) => label);
}

export function picturePaths(draft: Draft): string[] {
  return elementsIn(draft).flatMap((element) => (element.kind === "picture" ? [element.path] : []));
}

/** The draft as text, and where in it the pastes are; a picture is its path. */
export function unfolded(draft: Draft): { text: string; pastes: [from: number, to: number][] } {
  let text = "";
  const pastes: [number, number][] = [];
  for (const piece of piecesOf(draft)) {
    const from = text.length;
    if (typeof piece === "string") text += piece;
    else text += piece.kind === "paste" ? piece.text : quotedPath(piece.path);
    if (typeof piece !== "string" && piece.kind === "paste") pastes.push([from, text.length]);
  }
  return { text, pastes };
}

/** The reverse of `unfolded`. Places that are not in order, or not in the text, are not folded. */
export function folded(text: string, pastes: readonly (readonly [from: number, to: number])[]): Draft {
  let draft = emptyDraft;
  let done = 0;
  for (const [from, to] of pastes) {
    if (!(done <= from && from < to && to <= text.length)) continue;
    draft = insertPaste(insertText(draft, draftOf(text.slice(done, from)).text), text.slice(from, to));
    done = to;
  }
  return insertText(draft, draftOf(text.slice(done)).text);
}

/** The element that a character of the draft's text stands for; null for any other text. */
export function elementAt({ elements }: Pick<Draft, "elements">, character: string): DraftElement | null {
  // A whole pair of surrogates is a character of its own.
  return character.length === 1 ? (elements[character.charCodeAt(0) - FIRST_MARK] ?? null) : null;
}

/** A path for a message, in quotation marks if it has blanks, or could be taken for a command. */
export function quotedPath(path: string): string {
  return /^!|\s/.test(path) ? `"${path}"` : path;
}

function textOf(draft: Draft, show: (element: DraftElement) => string): string {
  return piecesOf(draft)
    .map((piece) => (typeof piece === "string" ? piece : show(piece)))
    .join("");
}

function elementsIn(draft: Draft): DraftElement[] {
  return piecesOf(draft).filter((piece) => typeof piece !== "string");
}

function piecesOf(draft: Draft): (string | DraftElement)[] {
  return draft.text
    .split(/(\p{Cs})/u)
    .filter((piece) => piece !== "")
    .map((piece) => elementAt(draft, piece) ?? piece);
}
