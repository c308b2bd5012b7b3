import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { root } from "../setup/run.js";

/**
 * Faults that change nothing which anybody could observe, each with the reason: `line` is the text of the line that the fault is in, `kind` its kind,
 * and `nth` tells those apart that have the same text and kind, counted from 1.
 */
export async function readEquivalent() {
  return JSON.parse(await readFile(join(root, "scripts/mutate/equivalent.json"), "utf8"));
}

/**
 * The faults without those that are listed, each with a `key` that stays the same when something else in its file changes, and the entries of
 * these places that fit no fault any more.
 */
export function withoutEquivalent(mutants, { equivalent, source }) {
  const keys = keysOf(mutants, source);
  const listed = new Set(equivalent.map(keyOf));
  return {
    others: mutants
      .map((mutant, index) => ({ ...mutant, key: keys[index] }))
      .filter(({ key }) => !listed.has(key)),
    stale: equivalent.filter((entry) => !keys.includes(keyOf(entry))),
  };
}

function keysOf(mutants, source) {
  const seen = new Map();
  return mutants.map(({ file, line, kind }) => {
    const text = source(file).split("\n")[line - 1].trim();
    const alike = `${file}\0${text}\0${kind}`;
    const nth = (seen.get(alike) ?? 0) + 1;
    seen.set(alike, nth);
    return keyOf({ file, line: text, kind, nth });
  });
}

function keyOf({ file, line, kind, nth = 1 }) {
  return JSON.stringify([file, line, kind, nth]);
}
