import { launchers, looksDangerous } from "./dangerous-commands.js";
import { memorablePrefix } from "./memorable-prefix.js";
import { isSafeCommand } from "./safe-commands.js";
import { commandsOf } from "./shell-script.js";
import type { CommandWords } from "./words.js";

/** The beginning of a command, word by word, that a person may approve for every command that begins so. */
export type CommandPrefix = readonly string[];

/** Programs that run whatever their arguments say: with options alone after them a prefix would stand for everything. */
const generalPrograms: ReadonlySet<string> = new Set(
  (
    "awk bun bunx deno dash docker fish gawk git irb java julia ksh lua luajit make mawk node nodejs npm npx " +
    "osascript perl php pip pip3 pipx pnpm podman powershell powershell.exe pwsh py pypy pypy3 python python2 python3 " +
    "pythonw pyw Rscript ruby sh bash zsh tclsh ts-node tsx uv uvx wscript yarn"
  ).split(" "),
);

/** Programs that start another one. Whatever comes after them is no beginning that says much. */
const starters: ReadonlySet<string> = new Set([...launchers, ..."cmd cmd.exe eval script ssh su".split(" ")]);

/**
 * Whether a prefix may be approved at all: not one that is empty or so general that it would approve everything, such as `python3`,
 * `bash -lc`, `git` or anything behind `sudo`.
 */
export function isAllowedPrefix(prefix: CommandPrefix): boolean {
  const [path = "", ...rest] = prefix;
  const name = path.slice(path.lastIndexOf("/") + 1);
  if (name === "" || starters.has(name)) return false;
  // `python3.11` is no less general than `python`.
  if (!generalPrograms.has(name) && !generalPrograms.has(name.replace(/-?\d[\d.]*$/, ""))) return true;
  // `python3 -m pytest` names what it runs as well as `npm test` does.
  const named = rest[0] === "-m" ? rest[1] : rest[0];
  return named !== undefined && !named.startsWith("-");
}

/**
 * Whether every command that the argument list runs begins with one of the prefixes, or in the sandbox is known to be safe. Never one
 * that looks dangerous.
 */
export function isCovered(
  argv: readonly string[],
  prefixes: readonly CommandPrefix[],
  place: "sandbox" | "escalated",
): boolean {
  if (looksDangerous(argv)) return false;
  const isFree = (words: CommandWords) => place === "sandbox" && isSafeCommand(words);
  return (
    commandsOf(argv)?.every(
      (words) => isFree(words) || prefixes.some((prefix) => beginsWith(words, prefix)),
    ) ?? false
  );
}

/**
 * The prefix to offer for a command: the model's, where it is one that may be approved and covers the command, else what is worth
 * remembering of a single command. Null where there is none to offer.
 */
export function prefixToOffer(
  argv: readonly string[],
  { proposed, place }: { proposed: CommandPrefix | null; place: "sandbox" | "escalated" },
): CommandPrefix | null {
  const isFit = (prefix: CommandPrefix) => isAllowedPrefix(prefix) && isCovered(argv, [prefix], place);
  if (proposed !== null) return isFit(proposed) ? proposed : null;
  const commands = commandsOf(argv);
  const [words] = commands ?? [];
  if (words === undefined || commands?.length !== 1) return null;
  const prefix = memorablePrefix(words);
  return isFit(prefix) ? prefix : null;
}

/** The words of a single command without the shell around it, so that two ways to write it are one; else the list itself. */
export function canonicalCommand(argv: readonly string[]): readonly string[] {
  const commands = commandsOf(argv);
  const [words] = commands ?? [];
  return words !== undefined && commands?.length === 1 ? words : argv;
}

function beginsWith(words: CommandWords, prefix: CommandPrefix): boolean {
  return prefix.length > 0 && prefix.every((word, at) => words[at] === word);
}
