import { formatKey, type KeyPath } from "../key-path.js";
import { isTable, type Table } from "../toml-document.js";
import type { ConfigSource } from "./sources.js";

export interface Setting {
  value: unknown;
  source: ConfigSource;
}

/** A table with the source of each value. In a map, keys such as `__proto__` have no special meaning. */
export type SettingTree = ReadonlyMap<string, SettingTree | Setting>;

export function settingTree(table: Table, sourceOf: (path: KeyPath) => ConfigSource): SettingTree {
  const treeAt = (inner: Table, path: KeyPath): SettingTree =>
    new Map(
      Object.entries(inner).map(([key, value]) => {
        const here = [...path, key];
        return [key, isTable(value) ? treeAt(value, here) : { value, source: sourceOf(here) }];
      }),
    );
  return treeAt(table, []);
}

export function isTree(node: SettingTree | Setting | undefined): node is SettingTree {
  return node instanceof Map;
}

/** Merges tables key by key; other values of `above` replace those below. */
export function merged(below: SettingTree, above: SettingTree): SettingTree {
  const result = new Map(below);
  for (const [key, node] of above) {
    const old = result.get(key);
    result.set(key, isTree(old) && isTree(node) ? merged(old, node) : node);
  }
  return result;
}

export function without(tree: SettingTree, key: string): SettingTree {
  return new Map([...tree].filter(([name]) => name !== key));
}

export function nodeAt(tree: SettingTree, path: KeyPath): SettingTree | Setting | undefined {
  let node: SettingTree | Setting | undefined = tree;
  for (const part of path) node = isTree(node) ? node.get(part) : undefined;
  return node;
}

/** The source of the value at the path, else of the first value below it, else of the nearest one above. */
export function sourceAt(tree: SettingTree, path: KeyPath): ConfigSource {
  for (let length = path.length; length > 0; length -= 1) {
    const node = nodeAt(tree, path.slice(0, length));
    const source = isTree(node) ? [...settingsOf(node)][0]?.source : node?.source;
    if (source !== undefined) return source;
  }
  return { kind: "default" };
}

export function plainTable(tree: SettingTree): Table {
  return Object.fromEntries(
    [...tree].map(([key, node]) => [key, isTree(node) ? plainTable(node) : node.value]),
  );
}

export function* settingsOf(tree: SettingTree, path: KeyPath = []): Iterable<Setting & { path: KeyPath }> {
  for (const [key, node] of tree) {
    const here = [...path, key];
    if (isTree(node)) yield* settingsOf(node, here);
    else yield { path: here, ...node };
  }
}

/** The sources of all values, by their keys in TOML syntax. */
export function sourcesOf(tree: SettingTree): Map<string, ConfigSource> {
  return new Map([...settingsOf(tree)].map(({ path, source }) => [formatKey(path), source]));
}
