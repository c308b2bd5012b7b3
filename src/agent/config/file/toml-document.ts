import { parse, TomlError } from "smol-toml";
import { BrigError } from "../../../errors.js";
import { isTooDeep } from "../../../lib/json/nesting.js";
import { formatKey, type KeyPath } from "./key-path.js";
import { keyLines } from "./toml-lines.js";

export type Table = Readonly<Record<string, unknown>>;

export interface TomlDocument {
  table: Table;
  /** The line of a key, from 1. If the key has no line of its own, that of the nearest table around it. */
  lineOf(path: KeyPath): number;
}

/** No setting is this deep. The code below recurses, and its memory grows with the square of the depth. */
const MAX_LEVELS = 64;

/** Error: `config.invalid` with file, line and column. */
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
