import { keyLines } from "../../agent/index.js";

/**
 * The line, from 1, of a field such as `limits.pids` or `tmpfs[1].sizeMb` in a valid document. For a missing field it is the
 * line of the nearest table around it, or null if there is none.
 */
export function lineOfField(field: string, toml: string): number | null {
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
