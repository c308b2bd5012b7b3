import { resolve } from "node:path";
import { keyLines } from "../../agent/index.js";
import type { CliContext } from "../../command/index.js";
import { say, writeJson } from "../../command/index.js";
import { visibleLine } from "../../lib/terminal/visible-line.js";
import type { PolicyReading } from "../../sandbox/index.js";
import { readPolicy, readPolicyFile } from "../../sandbox/index.js";

const INVALID = 2;

interface PolicyFault {
  /** Counts from 1. Null if the fault is not at any place in the file. */
  line: number | null;
  /** Null if the fault is in a field and not in the TOML syntax. */
  column: number | null;
  field: string | null;
  message: string;
}

/** Reports the faults of a policy file. Error: `policy.invalid` if the file cannot be read at all. */
export async function checkPolicy(
  given: string,
  { json = false }: { json?: boolean },
  context: CliContext,
): Promise<void> {
  const { stdout, cwd } = context;
  const file = resolve(cwd, given);
  const toml = await readPolicyFile(file);
  const reading = readPolicy(toml);
  const errors = faultsOf(reading, toml);
  const base = reading.kind === "valid" ? reading.base : null;
  if (errors.length > 0) context.setExitStatus(INVALID);
  if (json) return await writeJson(stdout, { file, valid: errors.length === 0, extends: base, errors });
  if (errors.length === 0)
    return await say(
      stdout,
      `${visibleLine(given)} is valid${base === null ? "" : `, and extends ${base}`}\n`,
    );
  for (const { line, column, message } of errors) {
    const place = [given, line, column].filter((part) => part !== null).join(":");
    await say(stdout, `${visibleLine(`${place}: ${message}`)}\n`);
  }
}

function faultsOf(reading: PolicyReading, toml: string): PolicyFault[] {
  if (reading.kind === "valid") return [];
  if (reading.kind === "not-toml") {
    const { line, column, reason } = reading;
    return [{ line, column, field: null, message: `not TOML: ${reason}` }];
  }
  return reading.problems.map(({ field, message }) => ({
    ...{ line: lineOfField(field, toml), column: null },
    ...{ field: field === "" ? null : field, message },
  }));
}

/**
 * The line, from 1, of a field such as `limits.pids` or `tmpfs[1].sizeMb` in a valid document. For a missing field it is the
 * line of the nearest table around it, or null if there is none.
 */
function lineOfField(field: string, toml: string): number | null {
  const [, list = "", index = "", rest = ""] = /^([^[]+)\[([0-9]+)\](.*)$/.exec(field) ?? [];
  const entry = list === "" ? null : entryOf({ list, index: Number(index) }, toml);
  if (entry === null) return nearest(withoutIndexes(field), keyLines(toml));
  return (nearest(withoutIndexes(list + rest), keyLines(entry.toml)) ?? 1) + entry.before;
}

interface Entry {
  toml: string;
  /** How many lines come before the entry. */
  before: number;
}

/** An entry that has a header such as `[[tmpfs]]`. */
function entryOf({ list, index }: { list: string; index: number }, toml: string): Entry | null {
  const lines = toml.split("\n");
  const headers = lines.flatMap((line, at) => (/^\s*\[/.test(line) ? [at] : []));
  const own = headers.filter((at) => lines[at]?.replace(/\s|#.*/g, "") === `[[${list}]]`);
  const start = own[index];
  if (start === undefined) return null;
  const end = headers.find((at) => at > start);
  return { toml: lines.slice(start, end).join("\n"), before: start };
}

function nearest(field: string, lines: ReadonlyMap<string, number>): number | null {
  const parts = field.split(".");
  for (let length = parts.length; length > 0; length -= 1) {
    const line = lines.get(parts.slice(0, length).join("."));
    if (line !== undefined) return line;
  }
  return null;
}

function withoutIndexes(field: string): string {
  return field.replace(/\[[0-9]+\]/g, "");
}
