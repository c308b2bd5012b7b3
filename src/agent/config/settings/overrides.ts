import { parse, TomlError } from "smol-toml";
import { BrigError } from "../../../errors.js";
import { KEY_PATTERN, type KeyPath, parseKey } from "../file/key-path.js";
import type { Table } from "../file/toml-document.js";

const assignmentPattern = new RegExp(`^\\s*(${KEY_PATTERN})\\s*=([\\s\\S]*)$`);

/** Parses `key=value`: a dotted key, and a TOML value or plain text. Error: `usage.invalid`. */
export function parseOverride(assignment: string): Table {
  const [, key = "", text = ""] = assignmentPattern.exec(assignment) ?? [];
  const path = partsOf(key);
  if (path === null)
    // The value is not shown, since it may be a secret.
    throw new BrigError(`-c ${assignment.replace(/=[\s\S]*/, "=…")} is not key=value`, {
      code: "usage.invalid",
      hint: "for example: -c model_reasoning_effort=high, -c 'sandbox_workspace_write.writable_roots=[\"/data\"]'",
    });
  return path.reduceRight<unknown>(
    (value, part) => Object.fromEntries([[part, value]]),
    parseValue(text.trim()),
  ) as Table;
}

function partsOf(key: string): KeyPath | null {
  if (key === "") return null;
  try {
    return parseKey(key);
  } catch (error) {
    if (error instanceof TomlError) return null;
    throw error;
  }
}

function parseValue(text: string): unknown {
  try {
    const table = parse(`value = ${text}`);
    // This check is needed because a second line could set another key.
    return Object.keys(table).length === 1 ? table.value : text;
  } catch (error) {
    if (error instanceof TomlError) return text;
    throw error;
  }
}
