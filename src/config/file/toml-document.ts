import { parse, TomlError } from "smol-toml";
import { BrigError } from "../../errors.js";
import { isTooDeep } from "../../lib/nesting.js";
import { formatKey, type KeyPath } from "./key-path.js";
import { keyLines } from "./toml-lines.js";

export type Table = Readonly<Record<string, unknown>>;

export interface TomlDocument {
  table: Table;
  /** The line, from 1, that a key is on; of the nearest key above it where it has none of its own. */
  lineOf(path: KeyPath): number;
}

/** No setting is that deep. What follows takes memory that grows with the square of it, and calls itself for each level. */
const MAX_LEVELS = 64;

/** Anything that does not parse is `config.invalid` with file, line and column. */
export function parseToml(text: string, file: string): TomlDocument {
  const table = parsed(text, file);
  if (isTooDeep(table, MAX_LEVELS))
    throw new BrigError(`${file}: its tables are nested more than ${MAX_LEVELS} levels deep`, {
      code: "config.invalid",
    });
  const lines = keyLines(text);
  return {
    table,
    lineOf(path) {
      for (let length = path.length; length > 0; length -= 1) {
        const line = lines.get(formatKey(path.slice(0, length)));
        if (line !== undefined) return line;
      }
      return 1;
    },
  };
}

export function isTable(value: unknown): value is Table {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

function parsed(text: string, file: string): Table {
  try {
    return parse(text);
  } catch (cause) {
    if (!(cause instanceof TomlError)) throw cause;
    const [reason] = cause.message.replace(/^Invalid TOML document: /, "").split("\n");
    throw new BrigError(`${file}:${cause.line}:${cause.column}: ${reason}`, {
      code: "config.invalid",
      cause,
    });
  }
}
