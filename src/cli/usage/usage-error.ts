import type { Command, CommanderError } from "commander";
import { BrigError } from "../../errors.js";
import { suggest } from "../../lib/suggest.js";
import { hintForCommand } from "./familiar-commands.js";
import { hintForOption } from "./familiar-options.js";

/** Turns an error of commander into a BrigError. Returns null after the help or the version was printed. */
export function usageError(error: CommanderError, command: Command): BrigError | null {
  if (error.exitCode === 0) return null;
  const message = unknownCommandBelow(error, command) ?? error.message.replace(/^error: /, "");
  const known = familiarHint(error, command);
  return new BrigError(known === null ? message : withoutGuess(message), {
    code: "usage.invalid",
    hint: hintFor(error, { command, known }),
    cause: error,
  });
}

/** Removes commander's guess, which is a word of similar letters, such as setup for stop. */
function withoutGuess(message: string): string {
  return message.replace(/\n\(Did you mean [^\n]*$/, "");
}

function hintFor(
  error: CommanderError,
  { command, known }: { command: Command; known: string | null },
): string {
  if (isPrompt(error, command)) return "to run a prompt: brig run PROMPT";
  const see = `see: ${pathOf(command)} --help`;
  return known === null ? see : `${known}; ${see}`;
}

function familiarHint({ code, message }: CommanderError, command: Command): string | null {
  const [, word = ""] = /'([^']*)'/.exec(message) ?? [];
  if (code === "commander.unknownOption") return hintForOption(word, command);
  return code === "commander.unknownCommand" && command.parent === null ? hintForCommand(word) : null;
}

/** Whether the unknown command has spaces, so that it was probably meant as a prompt. */
function isPrompt({ code }: CommanderError, { parent, args }: Command): boolean {
  return parent === null && code === "commander.unknownCommand" && /\s/.test(args[0] ?? "");
}

/** Reports a wrong subcommand as such; commander reports it as one argument too many. */
function unknownCommandBelow({ code }: CommanderError, { args, commands }: Command): string | null {
  const [word] = args;
  if (code !== "commander.excessArguments" || commands.length === 0 || word === undefined) return null;
  const meant = suggest(
    word,
    commands.map((each) => each.name()),
  );
  return `unknown command '${word}'${meant === null ? "" : `\n(Did you mean ${meant}?)`}`;
}

function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}
