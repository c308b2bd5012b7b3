import type { Argument, Command, Option } from "commander";
import { neutraliseLine } from "../../lib/terminal/terminal.js";
import { APPROVAL_POLICIES, SANDBOX_MODES } from "../../sandbox/index.js";

/** A word that may come next. */
export interface CompletedWord {
  word: string;
  about: string;
}

export interface Completion {
  words: CompletedWord[];
  /** What else may stand there. */
  others: "none" | "files" | "directories";
}

/** Words that nobody knows before they are asked for. */
export interface KnownWords {
  sandboxes(): CompletedWord[];
  sessions(): Promise<CompletedWord[]>;
}

const nothing: Completion = { words: [], others: "none" };
const files: Completion = { words: [], others: "files" };
const directories: Completion = { words: [], others: "directories" };

/** What may follow the words that were typed behind the program's name. The last one is unfinished, and may be empty. */
export async function completeWords(
  program: Command,
  typed: readonly string[],
  known: KnownWords,
): Promise<Completion> {
  const last = typed.at(-1) ?? "";
  const place = walk(program, typed.slice(0, -1));
  if (place.option !== null) return startingWith(last, await valuesOf(place.option, known));
  if (!place.isPastOptions && last.startsWith("-")) {
    const [, name, value] = /^(--[^=]+)=(.*)$/s.exec(last) ?? [];
    if (name === undefined) return startingWith(last, { words: optionsOf(place.command), others: "none" });
    const option = findOption(place.command, name);
    return option === undefined ? nothing : startingWith(value ?? "", await valuesOf(option, known));
  }
  const argument = argumentAt(place.command, place.operands);
  const fitting = argument === undefined ? nothing : await wordsFor(argument.name(), known);
  const below = place.operands === 0 ? commandsOf(place.command) : [];
  return startingWith(last, { ...fitting, words: [...below, ...fitting.words] });
}

interface Place {
  /** The command that the words so far have led to. */
  command: Command;
  /** How many arguments it has got already. */
  operands: number;
  /** The option whose value comes next; null for none. */
  option: Option | null;
  /** Whether what looks like an option is an argument. */
  isPastOptions: boolean;
}

function walk(program: Command, words: readonly string[]): Place {
  const place: Place = { command: program, operands: 0, option: null, isPastOptions: false };
  for (const word of words) step(place, word);
  return place;
}

function step(place: Place, word: string): void {
  // Behind help comes what may stand in its place.
  if (word === "help" && place.command.parent === null && place.operands === 0) return;
  if (place.option !== null) {
    place.option = null;
  } else if (place.isPastOptions) {
    place.operands++;
  } else if (word === "--") {
    place.isPastOptions = true;
  } else if (word.startsWith("-") && word !== "-") {
    const option = findOption(place.command, word);
    if (option?.required === true) place.option = option;
  } else {
    const below = place.operands === 0 ? place.command.commands.find((one) => isNamed(one, word)) : undefined;
    if (below === undefined) place.operands++;
    else place.command = below;
    // Behind the first argument of such a command comes the command line of another program.
    place.isPastOptions = below === undefined && passesOptionsOn(place.command);
  }
}

function isNamed(command: Command, word: string): boolean {
  return command.name() === word || command.aliases().includes(word);
}

/** Commander has a method that sets this, and none that reads it. */
function passesOptionsOn(command: Command): boolean {
  return (command as Command & { _passThroughOptions?: boolean })._passThroughOptions === true;
}

function findOption(command: Command, name: string): Option | undefined {
  return command.options.find(({ short, long }) => name === short || name === long);
}

function argumentAt({ registeredArguments }: Command, index: number): Argument | undefined {
  const last = registeredArguments.at(-1);
  return registeredArguments[index] ?? (last?.variadic === true ? last : undefined);
}

function commandsOf(command: Command): CompletedWord[] {
  const help = command.createHelp();
  return help
    .visibleCommands(command)
    .map((one) => ({ word: one.name(), about: help.subcommandDescription(one) }));
}

function optionsOf(command: Command): CompletedWord[] {
  const visible = command.createHelp().visibleOptions(command);
  return visible.flatMap(({ short, long, description }) =>
    [long, short].flatMap((word) => (word === undefined ? [] : [{ word, about: description }])),
  );
}

/** The values of options whose parsers choose among words, by their names. */
const settings: Readonly<Record<string, readonly string[]>> = {
  "--network": ["none", "full", "allowlist:"],
  "--setup-network": ["none", "full", "allowlist:"],
  "--workspace": ["bind", "overlay", "none"],
  "--git": ["protected", "branch"],
  "--ask-for-approval": APPROVAL_POLICIES,
  "--sandbox": SANDBOX_MODES,
};

async function valuesOf({ long = "", flags, argChoices }: Option, known: KnownWords): Promise<Completion> {
  const choices = argChoices ?? settings[long];
  if (choices !== undefined) return { words: choices.map((word) => ({ word, about: "" })), others: "none" };
  const placeholder = /<([^>]*)>/.exec(flags)?.[1] ?? "";
  return PLACEHOLDERS.has(placeholder.replace("...", "")) ? await wordsFor(placeholder, known) : nothing;
}

/** Of values of options, these are among what brig or the file system knows. */
const PLACEHOLDERS = new Set(["file", "path", "dir", "sandbox"]);

async function wordsFor(name: string, known: KnownWords): Promise<Completion> {
  switch (name.replace("...", "")) {
    case "sandbox":
      return { words: known.sandboxes(), others: "none" };
    case "source":
    case "destination":
      return { words: known.sandboxes().map((one) => ({ ...one, word: `${one.word}:` })), others: "files" };
    case "session":
    case "sessions":
      return { words: await known.sessions(), others: "files" };
    case "policy":
      return { words: SANDBOX_MODES.map((word) => ({ word, about: "a mode" })), others: "files" };
    case "dir":
      return directories;
    case "prompt":
    case "port":
      return nothing;
    default:
      return files;
  }
}

/** A description is one line without anything that a terminal would obey: that of a session is what somebody typed. */
function startingWith(start: string, { words, others }: Completion): Completion {
  const fitting = words.filter(({ word }) => word.startsWith(start));
  return { words: fitting.map(({ word, about }) => ({ word, about: neutraliseLine(about) })), others };
}
