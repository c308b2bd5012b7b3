import { parse } from "smol-toml";

export type KeyPath = readonly string[];

/** The key in TOML syntax: parts that are not bare keys are quoted. */
export function formatKey(path: readonly (string | number)[]): string {
  return path.reduce<string>((key, part) => {
    if (typeof part === "number") return `${key}[${part}]`;
    return key === "" ? formatPart(part) : `${key}.${formatPart(part)}`;
  }, "");
}

function formatPart(part: string): string {
  return /^[A-Za-z0-9_-]+$/.test(part) ? part : JSON.stringify(part);
}

const part = `(?:[A-Za-z0-9_-]+|"[^"\\\\\n]*(?:\\\\.[^"\\\\\n]*)*"|'[^'\n]*')`;
/** Matches a dotted key of TOML. */
export const KEY_PATTERN = `${part}(?:[ \\t]*\\.[ \\t]*${part})*`;

/** The parts of a key that matches the pattern. The TOML parser itself reads quotes and escapes. */
export function parseKey(key: string): KeyPath {
  const parts: string[] = [];
  let level: unknown = parse(`${key} = 0`);
  while (typeof level === "object" && level !== null) {
    const [entry] = Object.entries(level);
    if (entry === undefined) break;
    parts.push(entry[0]);
    level = entry[1];
  }
  return parts;
}
