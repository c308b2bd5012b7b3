import { BrigError } from "../errors.js";
import { isDiskFull } from "../lib/errno.js";
import { neutralise } from "../lib/terminal/terminal.js";

/** An error for a person: the message, the hint, and with `showsCauses` the stack and the causes. */
export function describeError(error: unknown, options: { showsCauses: boolean }): string {
  const lines = [`brig: ${messageOf(error)}`];
  if (error instanceof BrigError && error.hint) lines.push(`hint: ${error.hint}`);
  if (options.showsCauses) lines.push(...causeLines(error));
  else if (!(error instanceof BrigError)) lines.push(`hint: ${hintFor(error)}`);
  return `${neutralise(lines.join("\n"))}\n`;
}

function hintFor(error: unknown): string {
  return isDiskFull(error)
    ? "make room on this machine's disks: those of $BRIG_HOME, of temporary files, and of what was to be written"
    : "this is a bug in brig; set BRIG_DEBUG=1 to see where it happened";
}

export function errorAsJson(error: unknown): object {
  return { error: errorFacts(error) };
}

function errorFacts(error: unknown): object {
  if (!(error instanceof BrigError)) return { code: "internal", message: messageOf(error) };
  const { code, message, hint, reason, disk } = error;
  return { code, message, hint, reason, disk };
}

export async function errorAsEvent(error: unknown): Promise<object> {
  // Imported here, because every command loads this file and few need this code.
  const { wireDisk } = await import("../agent/index.js");
  const disk = error instanceof BrigError ? wireDisk(error.disk) : undefined;
  return { type: "error", ...errorFacts(error), disk };
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
