import { lstat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { BrigError } from "../../../errors.js";
import { readTextFile } from "../../../lib/bounded-file.js";
import { type SettingTree, settingTree } from "../settings/setting-tree.js";
import { isTable, parseToml, type Table } from "./toml-document.js";

const MAX_BYTES = 1024 * 1024;

/** Reads the user's configuration file; null if it does not exist. Error: `config.invalid`. */
export async function readConfigFile(file: string, home: string | undefined): Promise<SettingTree | null> {
  const text = await readText(file);
  if (text === null) return null;
  const { table, lineOf } = parseToml(text, file);
  const resolved = resolvePaths(table, { base: dirname(file), home });
  return settingTree(resolved, (path) => ({ kind: "file", file, line: lineOf(path) }));
}

/** Makes the paths in a table absolute: relative ones start at `base`, and `~/` is the home directory. */
export function resolvePaths(table: Table, from: { base: string; home: string | undefined }): Table {
  const absolute = (path: unknown) =>
    typeof path !== "string" || path === ""
      ? path
      : resolve(from.base, from.home === undefined ? path : path.replace(/^~(?=\/|$)/, from.home));
  const roots = (list: unknown) => (Array.isArray(list) ? list.map(absolute) : list);
  return replaced(table, {
    model_instructions_file: absolute,
    policy: absolute,
    sandbox_workspace_write: (inner) => (isTable(inner) ? replaced(inner, { writable_roots: roots }) : inner),
    agents: (inner) =>
      isTable(inner)
        ? Object.fromEntries(
            Object.entries(inner).map(([name, role]) => [
              name,
              isTable(role) ? replaced(role, { config_file: absolute }) : role,
            ]),
          )
        : inner,
    profiles: (inner) =>
      isTable(inner)
        ? Object.fromEntries(
            Object.entries(inner).map(([name, profile]) => [
              name,
              isTable(profile) ? resolvePaths(profile, from) : profile,
            ]),
          )
        : inner,
  });
}

function replaced(table: Table, changes: Readonly<Record<string, (value: unknown) => unknown>>): Table {
  return Object.fromEntries(
    Object.entries(table).map(([key, value]) => {
      const change = Object.hasOwn(changes, key) ? changes[key] : undefined;
      return [key, change === undefined ? value : change(value)];
    }),
  );
}

async function readText(file: string): Promise<string | null> {
  const read = await readTextFile(file, MAX_BYTES);
  if (read.kind === "text") return read.text;
  if (read.kind === "unreadable") throw unreadable(file, read.reason, read.cause);
  // A broken link is no missing file: somebody meant to have a configuration.
  if (await isLink(file)) throw unreadable(file, "is a link to a file that is not there");
  return null;
}

async function isLink(file: string): Promise<boolean> {
  return (await lstat(file).catch(() => null))?.isSymbolicLink() === true;
}

function unreadable(file: string, reason: string, cause?: unknown): BrigError {
  return new BrigError(`${file} ${reason}`, { code: "config.invalid", cause });
}
