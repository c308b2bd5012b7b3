import { z } from "zod";
import { suggest } from "../../../lib/suggest.js";
import { configSchema } from "../config-schema.js";
import { memberOf, unwrapped } from "../settings/schema-words.js";
import { isTree, type SettingTree, sourceAt } from "../settings/setting-tree.js";
import { describeSource } from "../settings/sources.js";
import { formatKey, type KeyPath } from "./key-path.js";
import { UNUSED_KEYS } from "./unused-keys.js";

const SHOWN_KEYS = 12;

/** A warning for each unknown key, with its place and the key that was probably meant. */
export function unknownKeyWarnings(tree: SettingTree): string[] {
  return unknownKeys(configSchema, tree, []).map(({ path, meant }) => {
    const hint = meant === null ? "" : `; did you mean \`${meant}\`?`;
    return `${describeSource(sourceAt(tree, path))}: unknown key \`${formatKey(path)}\`${hint}`;
  });
}

/** One sentence for all keys of Codex that brig ignores, except for `notice`, which Codex sets by itself. */
export function unusedKeyNotes(trees: readonly SettingTree[]): string[] {
  const names = new Set(trees.flatMap((tree) => unusedKeys(tree)));
  names.delete("notice");
  if (names.size === 0) return [];
  const shown = [...names].slice(0, SHOWN_KEYS).map((name) => `\`${name}\``);
  const more = names.size > SHOWN_KEYS ? ` and ${names.size - SHOWN_KEYS} more` : "";
  return [`these keys of Codex have no effect here: ${shown.join(", ")}${more}`];
}

/** Lists keys that nothing uses. If a whole table is unused, only its name is listed. */
function unusedKeys(tree: SettingTree, path: KeyPath = []): string[] {
  return [...tree].flatMap(([key, node]) => {
    const here = [...path, key];
    if (isUnusedKey(here)) return [formatKey(here)];
    return isTree(node) ? unusedKeys(node, here) : [];
  });
}

export function isUnusedKey(path: KeyPath): boolean {
  const [first, , third] = path;
  return UNUSED_KEYS.has((first === "profiles" ? third : first) ?? "") || isUnusedInTable(configSchema, path);
}

interface UnknownKey {
  path: KeyPath;
  meant: string | null;
}

function unknownKeys(schema: z.ZodType, tree: SettingTree, path: KeyPath): UnknownKey[] {
  const { inner } = unwrapped(schema);
  if (inner instanceof z.ZodRecord)
    return [...tree].flatMap(([key, node]) =>
      isTree(node) ? unknownKeys(inner.valueType as z.ZodType, node, [...path, key]) : [],
    );
  if (!(inner instanceof z.ZodObject)) return [];
  const shape: Record<string, z.ZodType> = inner.shape;
  return [...tree].flatMap(([key, node]) => {
    const here = [...path, key];
    const known = memberOf(inner, key);
    if (known !== undefined) return isTree(node) ? unknownKeys(known, node, here) : [];
    return isUnusedKey(here)
      ? []
      : [{ path: here, meant: suggest(key, Object.keys(shape)) ?? elsewhere(key) }];
  });
}

/** Finds a key that is in the wrong table, for example because of a forgotten table header. */
function elsewhere(key: string): string | null {
  const shape: Record<string, z.ZodType> = configSchema.shape;
  if (Object.hasOwn(shape, key)) return key;
  for (const [table, schema] of Object.entries(shape)) {
    const { inner } = unwrapped(schema);
    if (inner instanceof z.ZodObject && Object.hasOwn(inner.shape, key)) return `${table}.${key}`;
  }
  return null;
}

function isUnusedInTable(schema: z.ZodType, path: KeyPath): boolean {
  const [part, ...rest] = path;
  const { inner } = unwrapped(schema);
  if (part === undefined) return inner instanceof z.ZodUnknown;
  if (inner instanceof z.ZodUnknown) return true;
  if (inner instanceof z.ZodRecord) return isUnusedInTable(inner.valueType as z.ZodType, rest);
  if (!(inner instanceof z.ZodObject)) return false;
  const next = memberOf(inner, part);
  return next !== undefined && isUnusedInTable(next, rest);
}
