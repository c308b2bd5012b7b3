import { parse as parseTomlText, TomlError } from "smol-toml";
import { parse as parseYamlText, YAMLParseError } from "yaml";
import { isTooDeep } from "../../lib/json/nesting.js";
import { shown, type TaskNotes } from "./notes.js";
import { isTable, type Table } from "./values.js";

/** No setting of a task is this deep. */
const MAX_LEVELS = 48;

export interface ParsePlace {
  notes: TaskNotes;
  file: string;
}

/** Null, with a fault that gives line and column, for invalid TOML. */
export function parseToml(text: string, { notes, file }: ParsePlace): Table | null {
  const value = parsed(() => parseTomlText(text), { notes, file });
  return isTable(value) ? value : null;
}

/** Undefined, with a fault, for invalid YAML. */
export function parseYaml(text: string, { notes, file }: ParsePlace): unknown {
  return parsed(() => parseYamlText(text, { merge: true, logLevel: "error" }), { notes, file });
}

function parsed(parse: () => unknown, { notes, file }: ParsePlace): unknown {
  try {
    const value = parse();
    if (!isTooDeep(value, MAX_LEVELS)) return value;
    notes.refuse(`is nested more than ${MAX_LEVELS} levels deep`, { file });
  } catch (error) {
    notes.refuse(reasonOf(error), { file });
  }
  return undefined;
}

function reasonOf(error: unknown): string {
  if (error instanceof TomlError) {
    const [reason = ""] = error.message.replace(/^Invalid TOML document: /, "").split("\n");
    return `line ${error.line}, column ${error.column}: ${shown(reason).slice(1, -1)}`;
  }
  if (error instanceof YAMLParseError) {
    const [reason = ""] = error.message.split(/ at line |\n/);
    const line = error.linePos?.[0].line;
    return `${line === undefined ? "" : `line ${line}: `}${shown(reason).slice(1, -1)}`;
  }
  // Too many aliases, or nesting that exhausts the stack.
  if (error instanceof ReferenceError || error instanceof RangeError)
    return "is too deep, or repeats itself too often";
  throw error;
}
