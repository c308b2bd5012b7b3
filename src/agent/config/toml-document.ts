import { parse, TomlError } from "smol-toml";
import { BrigError } from "../../errors.js";
import { isTooDeep } from "../../lib/json/nesting.js";
import { formatKey, KEY_PATTERN, type KeyPath, parseKey } from "./key-path.js";

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

/**
 * The line, from 1, on which each key first appears, including tables and the keys of inline tables. The TOML
 * parser does not report lines. The document must be valid: this only follows its outline.
 */
export function keyLines(toml: string): ReadonlyMap<string, number> {
  const outline = new Outline(toml);
  outline.readDocument();
  return outline.lines;
}

/** White space and comments, between two keys or between a key and its value. */
const gap = /(?:[\s\uFEFF]|#[^\n]*)*/y;
const keyText = new RegExp(KEY_PATTERN, "y");
const text = /"""(?:\\[\s\S]|[^\\])*?"{3,5}|'''[\s\S]*?'{3,5}|"[^"\\]*(?:\\.[^"\\]*)*"|'[^']*'/y;
const plainValue = /[^\s,\]}#]+(?: [0-9:.+\-Zz]+)?/y;

class Outline {
  readonly lines = new Map<string, number>();
  readonly #toml: string;
  #at = 0;
  #line = 1;

  constructor(toml: string) {
    this.#toml = toml;
  }

  readDocument(): void {
    let table: KeyPath = [];
    this.#skip(gap);
    while (this.#at < this.#toml.length) {
      const before = this.#at;
      if (this.#next() === "[") {
        this.#skip(/\[+[ \t]*/y);
        table = this.#readKey([]);
        this.#skip(/[ \t]*\]+/y);
      } else {
        this.#readAssignment(table);
      }
      this.#skip(gap);
      // Keys after something that this does not understand have no lines; it must never loop.
      if (this.#at === before) return;
    }
  }

  #readAssignment(table: KeyPath): void {
    const path = this.#readKey(table);
    this.#skip(/[ \t]*=/y);
    this.#readValue(path);
  }

  #readKey(table: KeyPath): KeyPath {
    const line = this.#line;
    const key = this.#skip(keyText);
    const path = [...table, ...(key === "" ? [] : parseKey(key))];
    for (let length = table.length + 1; length <= path.length; length += 1) {
      const name = formatKey(path.slice(0, length));
      if (!this.lines.has(name)) this.lines.set(name, line);
    }
    return path;
  }

  #readValue(path: KeyPath): void {
    this.#skip(gap);
    const next = this.#next();
    if (next === "[") this.#readItems("]", () => this.#readValue(path));
    else if (next === "{") this.#readItems("}", () => this.#readAssignment(path));
    else this.#skip(next === '"' || next === "'" ? text : plainValue);
  }

  #readItems(end: string, readItem: () => void): void {
    this.#at += 1;
    this.#skip(gap);
    while (this.#at < this.#toml.length && this.#next() !== end) {
      const before = this.#at;
      readItem();
      this.#skip(gap);
      if (this.#next() === ",") this.#at += 1;
      this.#skip(gap);
      if (this.#at === before) return;
    }
    this.#at += 1;
  }

  #next(): string | undefined {
    return this.#toml[this.#at];
  }

  /** Returns what the pattern matches at the current position, and moves past it. */
  #skip(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const [skipped] = pattern.exec(this.#toml) ?? [""];
    this.#at += skipped.length;
    for (const character of skipped) if (character === "\n") this.#line += 1;
    return skipped;
  }
}
