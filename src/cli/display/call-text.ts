import { basename } from "node:path";
import { z } from "zod";
import { isTooDeep } from "../../lib/nesting.js";
import { neutralise, neutraliseLine } from "../../lib/terminal/terminal.js";
import { clipped } from "../../output/cut-text.js";
import { shellQuote } from "../../tools/command/shell-quote.js";

const INPUT_CHARS = 160;

/** A command for a person to read, safe for a terminal. Of `bash -c SCRIPT` only the script is shown. */
export function commandText(argv: readonly string[]): string {
  const [shell = "", flag = "", script] = argv;
  const isScript = argv.length === 3 && /^-l?c$/.test(flag) && /^(?:ba|z|da)?sh$/.test(basename(shell));
  return neutralise(isScript && script !== undefined ? script : shellQuote(argv)).trimEnd();
}

/**
 * A call in one short line, safe for a terminal: its command, or the tool and its arguments. Of a freeform
 * tool's input only the size is shown.
 */
export function callTitle(name: string, input: string): string {
  const args = parsed(input);
  return commandTitle(args) ?? neutraliseLine(`${name} ${inputText(args, input)}`.trim());
}

const commandArguments = z.union([
  z.looseObject({ cmd: z.string() }).transform(({ cmd }) => cmd),
  z.looseObject({ command: z.string() }).transform(({ command }) => command),
  z.looseObject({ command: z.array(z.string()).min(1) }).transform(({ command }) => commandText(command)),
]);

function commandTitle(args: unknown): string | null {
  const command = commandArguments.safeParse(args);
  return command.success ? neutraliseLine(clipped(`$ ${command.data.trim()}`, INPUT_CHARS)) : null;
}

function inputText(args: unknown, input: string): string {
  if (typeof args !== "object" || args === null) return `(${input.length} characters)`;
  const texts = Object.entries(args).map(([key, value]) =>
    typeof value === "string" && /(?:path|pattern)$/.test(key) ? value : `${key}=${valueText(value)}`,
  );
  return clipped(texts.join(" "), INPUT_CHARS);
}

/** Lists of objects are abbreviated, since they are unreadable in one line. */
function valueText(value: unknown): string {
  const isTables = Array.isArray(value) && value.some((each) => typeof each === "object");
  return isTables ? "[…]" : JSON.stringify(value);
}

function parsed(json: string): unknown {
  try {
    const value: unknown = JSON.parse(json);
    return isTooDeep(value) ? null : value;
  } catch {
    return null;
  }
}
