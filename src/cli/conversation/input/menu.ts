import { neutraliseLine } from "../../../lib/terminal/terminal.js";
import type { Draft } from "./draft.js";
import { type ArgumentChoice, type SlashCommand, slashCommands } from "./slash-commands.js";

/** The word before the cursor, if there is something to choose for it. `to` is its end, perhaps behind the cursor. */
export type Word = { from: number; to: number; typed: string } & (
  | { kind: "command" }
  | { kind: "argument"; command: SlashCommand }
  | { kind: "file" }
);

/** One of the things to choose from. Label and summary are safe for a terminal. */
export interface Choice {
  /** Replaces the word. */
  text: string;
  label: string;
  summary: string;
  /** Whether Enter sends the draft with it. */
  isWhole: boolean;
}

/** What there is for a word. */
export interface Offer {
  choices: readonly Choice[];
  /** A line below the choices; null for none. */
  note: string | null;
}

export interface Menu extends Offer {
  word: Word;
  /** Null until the person chooses, where Enter has a meaning without a choice. */
  selected: number | null;
}

/** Longer words are not completed. */
const LONGEST_WORD = 512;

export function wordAtCursor({ text, cursor }: Draft): Word | null {
  const before = text.slice(0, cursor);
  const to = cursor + (/^[^\s\p{Cs}]*/u.exec(text.slice(cursor, cursor + LONGEST_WORD))?.[0].length ?? 0);
  return commandWord(text, { before, to }) ?? fileWord(before, to);
}

function commandWord(text: string, { before, to }: { before: string; to: number }): Word | null {
  if (text.length > LONGEST_WORD || /[\n\p{Cs}]/u.test(text)) return null;
  const name = /^\s*\/(?<name>[A-Za-z-]*)$/.exec(before)?.groups?.name;
  if (name !== undefined) return { kind: "command", from: before.indexOf("/"), to, typed: name };
  const call = /^\s*\/(?<name>[A-Za-z-]+)[ \t]+(?<typed>.*)$/.exec(before)?.groups;
  const command = slashCommands.find((each) => each.name === call?.name?.toLowerCase());
  if (command?.completions === undefined || call?.typed === undefined) return null;
  return { kind: "argument", from: before.length - call.typed.length, to, typed: call.typed, command };
}

function fileWord(before: string, to: number): Word | null {
  const typed = /(?:^|[\s\p{Cs}])@(?<typed>[^\s@\p{Cs}]*)$/u.exec(before.slice(-LONGEST_WORD))?.groups?.typed;
  return typed === undefined ? null : { kind: "file", from: before.length - typed.length - 1, to, typed };
}

export function isSameWord(one: Word | null, other: Word): boolean {
  return one !== null && one.kind === other.kind && one.from === other.from && one.typed === other.typed;
}

/** Null if there is nothing to show. */
export function menuOf(word: Word, offer: Offer): Menu | null {
  if (offer.choices.length === 0 && offer.note === null) return null;
  // Enter behind "/mode" shows the mode; it must not change it to the first one of the list.
  const isChosen = offer.choices.length > 0 && (word.kind !== "argument" || word.typed !== "");
  return { ...offer, word, selected: isChosen ? 0 : null };
}

export function moveSelection(menu: Menu, step: -1 | 1): Menu {
  const count = menu.choices.length;
  const from = menu.selected ?? (step === 1 ? -1 : 0);
  return { ...menu, selected: (from + step + count) % count };
}

/** The draft with a choice in place of the word. */
export function withChoice(draft: Draft, { from, to }: Word, { text }: Choice): Draft {
  const isSpaced = text.endsWith(" ") && draft.text.charAt(to) === " ";
  const inserted = isSpaced ? text.slice(0, -1) : text;
  return {
    ...draft,
    text: draft.text.slice(0, from) + inserted + draft.text.slice(to),
    cursor: from + text.length,
  };
}

/** The commands whose name begins with what is typed. */
export function commandOffer(typed: string): Offer {
  const prefix = typed.toLowerCase();
  const found = slashCommands.filter(({ name }) => name.startsWith(prefix));
  // A command that is typed in full comes before those that are longer.
  const exact = found.filter(({ name }) => name === prefix);
  const choices = [...exact, ...found.filter((command) => !exact.includes(command))].map(commandChoice);
  return { choices, note: null };
}

function commandChoice(command: SlashCommand): Choice {
  const { name, argument, summary } = command;
  const isWhole = !needsArgument(command);
  const call = `/${name}`;
  return argument === undefined
    ? { text: call, label: call, summary, isWhole }
    : { text: `${call} `, label: `${call} ${argument}`, summary, isWhole };
}

function needsArgument({ argument }: SlashCommand): boolean {
  return argument !== undefined && !argument.startsWith("[");
}

/** The arguments that begin with what is typed. */
export function argumentOffer(typed: string, arguments_: readonly ArgumentChoice[]): Offer {
  const prefix = typed.toLowerCase();
  const choices = arguments_
    .filter(({ value }) => value.toLowerCase().startsWith(prefix))
    .map(({ value, summary = "", needsMore = false }) => ({
      text: needsMore ? `${value} ` : value,
      label: neutraliseLine(value),
      summary: neutraliseLine(summary),
      isWhole: !needsMore,
    }));
  return { choices, note: null };
}
