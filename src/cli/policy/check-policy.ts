import { resolve } from "node:path";
import { visibleLine } from "../../lib/terminal/visible-line.js";
import type { PolicyReading } from "../../sandbox/index.js";
import { readPolicy, readPolicyFile } from "../../sandbox/index.js";
import type { CliContext } from "../context.js";
import { say, writeJson } from "../render.js";
import { lineOfField } from "./line-of-field.js";

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
