import { type Draft, emptyDraft, insertPaste, insertText, sentText } from "./draft.js";
import { applyEditingKey, type EditingKey } from "./editor.js";
import type { Key } from "./keys.js";
import type { Menu } from "./menu.js";

/** The draft of the next message, and the position in the history of earlier messages. */
export interface Composer {
  draft: Draft;
  /** The earlier message that is shown, and the draft to return to. */
  recalled: { index: number; waiting: Draft } | null;
  /** The search in earlier messages, and the draft to return to. */
  search: { query: string; index: number | null; waiting: Draft } | null;
  /** What can be chosen for the word before the cursor; null while nothing is offered. */
  menu: Menu | null;
  /** Where the word begins whose menu the person has closed; null if there is none. */
  closedAt: number | null;
}

export const emptyComposer: Composer = {
  draft: emptyDraft,
  recalled: null,
  search: null,
  menu: null,
  closedAt: null,
};

export function composerWith(draft: Draft): Composer {
  return { ...emptyComposer, draft };
}

/** Applies a key to the draft, if it has a meaning here. `history` has the most recent message last. */
export function reduceComposer(composer: Composer, key: Key, history: readonly Draft[]): Composer {
  if (composer.search !== null) return reduceSearch(composer, composer.search, { key, history });
  if (key.kind === "paste") return { ...composer, draft: insertPaste(composer.draft, key.text) };
  if (key.kind === "text") return { ...composer, draft: insertText(composer.draft, key.text) };
  switch (key.name) {
    case "search":
      return { ...composer, search: { query: "", index: null, waiting: composer.draft } };
    case "tab":
      return { ...composer, draft: insertText(composer.draft, "  ") };
    case "enter":
      return escapesEnter(composer.draft)
        ? { ...composer, draft: breakAtBackslash(composer.draft) }
        : composer;
    case "escape":
    case "interrupt":
    case "end-of-input":
    case "unfold":
    case "redraw":
    case "suspend":
      return composer;
    default:
      return edit(composer, key.name, history);
  }
}

/** Whether Enter starts a new line because there is a backslash before the cursor. */
export function escapesEnter({ text, cursor }: Draft): boolean {
  return text.charAt(cursor - 1) === "\\";
}

function breakAtBackslash(draft: Draft): Draft {
  return insertText(applyEditingKey(draft, "backspace") ?? draft, "\n");
}

function edit(composer: Composer, key: EditingKey, history: readonly Draft[]): Composer {
  const draft = applyEditingKey(composer.draft, key);
  if (draft !== null) return { ...composer, draft };
  if (key === "up") return recall(composer, -1, history);
  if (key === "down") return recall(composer, 1, history);
  return composer;
}

function recall(composer: Composer, step: -1 | 1, history: readonly Draft[]): Composer {
  const { recalled } = composer;
  const index = (recalled?.index ?? history.length) + step;
  if (recalled !== null && index >= history.length)
    return { ...composer, draft: recalled.waiting, recalled: null };
  return recallAt(composer, index, history);
}

/** Shows an earlier message, if there is one with this index. */
export function recallAt(composer: Composer, index: number, history: readonly Draft[]): Composer {
  const { recalled, draft } = composer;
  const earlier = history[index];
  if (earlier === undefined) return composer;
  return { ...composer, draft: earlier, recalled: { index, waiting: recalled?.waiting ?? draft } };
}

/** Typing narrows the search, ctrl-R goes to an older match, escape and ctrl-C cancel, other keys accept. */
function reduceSearch(
  composer: Composer,
  search: NonNullable<Composer["search"]>,
  { key, history }: { key: Key; history: readonly Draft[] },
): Composer {
  if (key.kind !== "key") return find(composer, { ...search, query: search.query + key.text }, history);
  switch (key.name) {
    case "backspace":
      return find(composer, { ...search, query: [...search.query].slice(0, -1).join("") }, history);
    case "search": {
      const older = lastMatch(history, search.query, search.index ?? history.length);
      return older === null ? composer : found(composer, { ...search, index: older }, history);
    }
    case "escape":
    case "interrupt":
      return { ...composer, draft: search.waiting, search: null };
    default:
      return { ...composer, search: null };
  }
}

function find(
  composer: Composer,
  search: NonNullable<Composer["search"]>,
  history: readonly Draft[],
): Composer {
  return found(composer, { ...search, index: lastMatch(history, search.query, history.length) }, history);
}

function found(
  composer: Composer,
  search: NonNullable<Composer["search"]>,
  history: readonly Draft[],
): Composer {
  const earlier = search.index === null ? undefined : history[search.index];
  return { ...composer, search, draft: earlier ?? search.waiting };
}

function lastMatch(history: readonly Draft[], query: string, before: number): number | null {
  if (query === "") return null;
  const wanted = query.toLowerCase();
  for (let index = before - 1; index >= 0; index--)
    if (textAt(history, index).toLowerCase().includes(wanted)) return index;
  return null;
}

function textAt(history: readonly Draft[], index: number): string {
  const draft = history[index];
  return draft === undefined ? "" : sentText(draft);
}
