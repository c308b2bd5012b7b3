import type { Command, CommanderError } from "commander";
import { BrigError } from "../../errors.js";
import { suggest } from "../../lib/suggest.js";
import { neutralise } from "../../lib/terminal/terminal.js";

/** An error for a person: the message, the hint, and with `showsCauses` the stack and the causes. */
export function describeError(error: unknown, options: { showsCauses: boolean }): string {
  const lines = [`brig: ${messageOf(error)}`];
  if (error instanceof BrigError && error.hint) lines.push(`hint: ${error.hint}`);
  if (options.showsCauses) lines.push(...causeLines(error));
  else if (!(error instanceof BrigError))
    lines.push("hint: this is a bug in brig; set BRIG_DEBUG=1 to see where it happened");
  return `${neutralise(lines.join("\n"))}\n`;
}

export function errorAsJson(error: unknown): object {
  return { error: errorFacts(error) };
}

function errorFacts(error: unknown): object {
  if (!(error instanceof BrigError)) return { code: "internal", message: messageOf(error) };
  const { code, message, hint, reason } = error;
  return { code, message, hint, reason };
}

export function errorAsEvent(error: unknown): object {
  return { type: "error", ...errorFacts(error) };
}

/** Turns an error of commander into a BrigError. Returns null after the help or the version was printed. */
export function usageError(error: CommanderError, command: Command): BrigError | null {
  if (error.exitCode === 0) return null;
  const message = unknownCommandBelow(error, command) ?? error.message.replace(/^error: /, "");
  return new BrigError(message, {
    code: "usage.invalid",
    hint: isPrompt(error, command) ? "to run a prompt: brig run PROMPT" : `see: ${pathOf(command)} --help`,
    cause: error,
  });
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

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message || error.name : String(error);
}

function causeLines(error: unknown): string[] {
  const lines: string[] = [];
  const seen = new Set<unknown>();
  for (let link = error; link !== undefined && !seen.has(link); link = causeOf(link)) {
    const label = seen.size === 0 ? "" : "caused by: ";
    seen.add(link);
    lines.push(`${label}${link instanceof Error ? (link.stack ?? messageOf(link)) : String(link)}`);
  }
  return lines;
}

function causeOf(error: unknown): unknown {
  return error instanceof Error ? error.cause : undefined;
}
