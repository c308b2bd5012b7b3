import type { Key } from "./input/keys.js";
import { fitLine, type StyledLine, span } from "./screen/styled-line.js";

/** An entry of a list from which a person chooses. Its texts are safe for a terminal. */
export interface ListEntry {
  /** What was chosen, for whoever asks. */
  key: string;
  label: string;
  /** More about it, shown behind the label. */
  about?: string | undefined;
  /** What a person may look for. Default: label and what is shown behind it. */
  search?: string | undefined;
}

/** A list at the terminal: what is in it, what was typed to narrow it, and where the person is. */
export interface Chooser {
  entries: readonly ListEntry[];
  query: string;
  /** The place among the entries that match. */
  at: number;
  /** Whether more entries are being read. */
  isReading: boolean;
}

const LONGEST_QUERY = 200;
const SHOWN_ENTRIES = 12;
/** So many entries below the present one are read ahead. */
const READ_AHEAD = 40;

export function chooserOf(entries: readonly ListEntry[], { at = 0 }: { at?: number } = {}): Chooser {
  return { entries, query: "", at: Math.max(0, at), isReading: false };
}

function matchingEntries({ entries, query }: Chooser): readonly ListEntry[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return entries;
  return entries.filter(({ label, about = "", search = `${label} ${about}` }) => {
    const text = search.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/** Whether a person may soon see the end of what has been read. */
export function wantsMore(chooser: Chooser): boolean {
  return matchingEntries(chooser).length < chooser.at + READ_AHEAD;
}

/** Adds what was read; null at the end, where the present place has to be one where something is. */
export function withEntries(list: Chooser, more: readonly ListEntry[] | null): Chooser {
  if (more !== null) return { ...list, isReading: false, entries: [...list.entries, ...more] };
  const last = matchingEntries(list).length - 1;
  return { ...list, isReading: false, at: Math.max(0, Math.min(list.at, last)) };
}

export type Chosen =
  | { kind: "list"; list: Chooser }
  | { kind: "chosen"; entry: ListEntry }
  | { kind: "dismissed" };

/** What a key does to a list: every key belongs to it. */
export function pressInList(list: Chooser, key: Key): Chosen {
  if (key.kind !== "key") return { kind: "list", list: narrowed(list, list.query + key.text) };
  const matching = matchingEntries(list);
  const moved = (at: number): Chosen => ({
    kind: "list",
    list: { ...list, at: Math.max(0, Math.min(at, matching.length - 1)) },
  });
  switch (key.name) {
    case "up":
      return moved(list.at - 1);
    case "down":
      return moved(list.at + 1);
    case "line-start":
      return moved(0);
    case "line-end":
      return moved(matching.length - 1);
    case "backspace":
      return { kind: "list", list: narrowed(list, [...list.query].slice(0, -1).join("")) };
    case "delete-word-left":
    case "delete-to-start":
      return { kind: "list", list: narrowed(list, "") };
    case "enter": {
      const entry = matching[list.at];
      return entry === undefined ? { kind: "list", list } : { kind: "chosen", entry };
    }
    case "escape":
      return { kind: "dismissed" };
    default:
      return { kind: "list", list };
  }
}

function narrowed(list: Chooser, typed: string): Chooser {
  const query = typed.replaceAll(/\s+/g, " ").slice(0, LONGEST_QUERY);
  return query === list.query ? list : { ...list, query, at: 0 };
}

/** The rows around the present entry, one for each, and what was typed. */
export function chooserRows(
  list: Chooser,
  { columns, maxRows, dismissal }: { columns: number; maxRows: number; dismissal: string },
): StyledLine[] {
  const matching = matchingEntries(list);
  const count = Math.max(1, Math.min(SHOWN_ENTRIES, maxRows - 2));
  const first = Math.max(0, Math.min(list.at - Math.floor(count / 2), matching.length - count));
  const width = columns - 2;
  const rows = matching.slice(first, first + count).map((entry, index): StyledLine => {
    const isPresent = first + index === list.at;
    const about = entry.about === undefined ? [] : [span(`  ${entry.about}`, "quiet")];
    const row = fitLine([span(entry.label, isPresent ? "strong" : "plain"), ...about], width);
    return [span(isPresent ? "› " : "  ", "accent"), ...row];
  });
  const below = matching.length - first - rows.length;
  const state = list.isReading ? "reading …" : below > 0 ? `⋮ ${below} more` : "";
  const none = matching.length === 0 && !list.isReading ? "nothing is listed" : "";
  const rest = [none, state].filter((text) => text !== "").join(" · ");
  const keys = `up, down, Enter · ${list.query === "" ? "type to narrow" : `narrowed to: ${list.query}`} · esc  ${dismissal}`;
  return [...rows, ...(rest === "" ? [] : [[span(`  ${rest}`, "quiet")]]), [span(`  ${keys}`, "quiet")]];
}
