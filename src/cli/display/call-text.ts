import { z } from "zod";
import type { AgentEvent, SessionRestorePoint } from "../../agent/index.js";
import { isTooDeep } from "../../lib/json/nesting.js";
import { neutralise, neutraliseLine } from "../../lib/terminal/terminal.js";
import { formatDuration } from "../../lib/time/durations.js";
import { clipped } from "../../sandbox/index.js";
import { commandForPeople } from "../../tools/index.js";

const INPUT_CHARS = 160;
const SHOWN_PATHS = 5;

/** A command for a person to read, safe for a terminal. `bash -c SCRIPT` is shown as the script only. */
export function commandText(argv: readonly string[]): string {
  return neutralise(commandForPeople(argv)).trimEnd();
}

/**
 * A call in one short line, safe for a terminal: its command, or the tool and its arguments. For a freeform
 * tool, only the size of the input is shown.
 */
export function callTitle(name: string, input: string): string {
  const args = parsed(input);
  return commandTitle(args) ?? neutraliseLine(`${name} ${inputText(args, input)}`.trim());
}

/** What came of a call. For a declined command that is the reason: the content is written for the model. */
export function endText(content: string, declined: { reason: string } | null): string {
  return neutralise(declined === null ? content : `not run: ${declined.reason}`);
}

/** The first of the paths that a call has changed, in one line that is safe for a terminal. */
export function changedText({ count, changes }: Pick<SessionRestorePoint, "count" | "changes">): string {
  const shown = changes.slice(0, SHOWN_PATHS).map(({ path }) => neutraliseLine(path));
  const left = count - shown.length;
  return left > 0 ? `${shown.join(", ")} and ${left} more` : shown.join(", ");
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

/** The start and the end of a set-up, safe for a terminal. */
export function setupText(event: AgentEvent & { kind: "setup-started" | "setup-ended" }): string {
  if (event.kind === "setup-started")
    return `setting up: ${clipped(neutraliseLine(commandText(event.argv)), INPUT_CHARS)}`;
  const { exitCode, durationMs } = event;
  if (exitCode === null || durationMs === null) return "the set-up was not run to its end";
  return exitCode === 0
    ? `set up in ${formatDuration(durationMs)}`
    : `the set-up failed with exit status ${exitCode} after ${formatDuration(durationMs)}`;
}
