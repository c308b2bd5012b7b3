import type { Command, CommanderError } from "commander";
import { BrigError } from "../../errors.js";
import { suggest } from "../../lib/suggest.js";
import { neutralise } from "../../lib/terminal/terminal.js";

/** An error as a person reads it on stderr: the message, what to do, and with `showsCauses` where it came from. */
export function describeError(error: unknown, options: { showsCauses: boolean }): string {
  const lines = [`brig: ${messageOf(error)}`];
  if (error instanceof BrigError && error.hint) lines.push(`hint: ${error.hint}`);
  if (options.showsCauses) lines.push(...causeLines(error));
  else if (!(error instanceof BrigError))
    lines.push("hint: this is a fault of brig; BRIG_DEBUG=1 shows where it arose");
  return `${neutralise(lines.join("\n"))}\n`;
}

/** An error as a program reads it on stdout, with `--json`. */
export function errorAsJson(error: unknown): object {
  return { error: errorFacts(error) };
}

function errorFacts(error: unknown): object {
  if (!(error instanceof BrigError)) return { code: "internal", message: messageOf(error) };
  const { code, message, hint, reason } = error;
  return { code, message, hint, reason };
}

/** An error as one of the events that a session prints with `--json`. */
export function errorAsEvent(error: unknown): object {
  return { type: "error", ...errorFacts(error) };
}

/** Commander's complaint about what `command` was given as one of our errors; null when it only printed help or the version. */
export function usageError(error: CommanderError, command: Command): BrigError | null {
  if (error.exitCode === 0) return null;
  const message = unknownCommandBelow(error, command) ?? error.message.replace(/^error: /, "");
  return new BrigError(message, {
    code: "usage.invalid",
    hint: isPrompt(error, command) ? "for a prompt: brig run PROMPT" : `see: ${pathOf(command)} --help`,
    cause: error,
  });
}

/** What has spaces in it is no command; on a terminal it begins a conversation. */
function isPrompt({ code }: CommanderError, { parent, args }: Command): boolean {
  return parent === null && code === "commander.unknownCommand" && /\s/.test(args[0] ?? "");
}

/** A word where a command is expected is a slip, though commander takes it for one argument too many. */
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
