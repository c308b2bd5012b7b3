import { lstat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { z } from "zod";
import { BrigError } from "../../errors.js";
import { readTextFile } from "../../lib/bounded-file.js";
import type { Environment } from "../../lib/env.js";
import { suggest } from "../../lib/suggest.js";
import { type AgentRoleConfig, agentRoleSchema } from "./agents-schema.js";
import { isTree, nodeAt, type Setting, type SettingTree, settingTree } from "./settings/setting-tree.js";
import { isTable, parseToml, type Table } from "./toml-document.js";
import { unknownKeyWarnings } from "./unknown-keys.js";

const MAX_BYTES = 1024 * 1024;

/** Reads the user's configuration file; null if it does not exist. Error: `config.invalid`. */
export async function readConfigFile(file: string, home: string | undefined): Promise<SettingTree | null> {
  const text = await readText(file);
  return text === null ? null : configTree(text, file, home);
}

/** What the text of a configuration file says. Error: `config.invalid`. */
export function configTree(text: string, file: string, home: string | undefined): SettingTree {
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

interface ProfilePlaces {
  /** The user's config.toml; null if there is none. */
  file: string | null;
  environment: Pick<Environment, "brigHome" | "codexHome"> & Partial<Pick<Environment, "home">>;
}

export interface ChosenProfile {
  tree: SettingTree;
  warnings: readonly string[];
}

/**
 * The keys of a profile: of the table `[profiles.NAME]` or, as in Codex 0.169, of the file `NAME.config.toml`
 * beside config.toml. Error: `config.invalid` if neither or both exist.
 */
export async function chosenProfile(
  stored: SettingTree,
  chosen: string | undefined,
  places: ProfilePlaces,
): Promise<ChosenProfile> {
  const asked = nodeAt(stored, ["profile"]);
  const named = asked === undefined || isTree(asked) ? undefined : asked.value;
  const name = chosen ?? (typeof named === "string" ? named : undefined);
  if (name === undefined) return { tree: new Map(), warnings: [] };
  const profiles = nodeAt(stored, ["profiles"]);
  const table = isTree(profiles) ? profiles.get(name) : undefined;
  const found = await readProfileFile(name, places);
  if (found !== null && table !== undefined) throw describedTwice(name, found.file);
  if (found !== null)
    return { tree: fromProfile(found.tree, name), warnings: unknownKeyWarnings(found.tree) };
  if (isTree(table)) return { tree: fromProfile(table, name), warnings: [] };
  throw noProfile(name, isTree(profiles) ? [...profiles.keys()] : [], places);
}

async function readProfileFile(
  name: string,
  places: ProfilePlaces,
): Promise<{ file: string; tree: SettingTree } | null> {
  // Other names could lead to a file outside of the folder.
  if (!/^\w[\w.-]*$/.test(name)) return null;
  for (const folder of folders(places)) {
    const file = join(folder, `${name}.config.toml`);
    const tree = await readConfigFile(file, places.environment.home);
    if (tree === null) continue;
    for (const key of ["profile", "profiles"]) if (tree.has(key)) throw nested(file, key);
    return { file, tree };
  }
  return null;
}

/** A profile must be beside the config.toml that is read. */
function folders({ file, environment: { brigHome, codexHome } }: ProfilePlaces): string[] {
  return file === null ? [brigHome, codexHome] : [dirname(file)];
}

function fromProfile(tree: SettingTree, profile: string): SettingTree {
  const result = new Map<string, SettingTree | Setting>();
  for (const [key, node] of tree) {
    if (isTree(node)) result.set(key, fromProfile(node, profile));
    else if (node.source.kind !== "file") result.set(key, node);
    else result.set(key, { value: node.value, source: { ...node.source, kind: "profile", profile } });
  }
  return result;
}

function noProfile(name: string, names: readonly string[], places: ProfilePlaces): BrigError {
  const meant = suggest(name, names);
  const folder = folders(places)[0] ?? "";
  return new BrigError(`${places.file ?? "config.toml"} has no profile \`${name}\``, {
    code: "config.invalid",
    hint:
      meant === null
        ? `add a table [profiles.${name}], or a file ${join(folder, `${name}.config.toml`)}`
        : `did you mean ${meant}?`,
  });
}

function describedTwice(name: string, file: string): BrigError {
  return new BrigError(`there are two profiles \`${name}\`: [profiles.${name}] and ${file}`, {
    code: "config.invalid",
    hint: "move the settings of the table into the file, which Codex reads too",
  });
}

function nested(file: string, key: string): BrigError {
  return new BrigError(`${file}: \`${key}\` is not allowed in a profile`, { code: "config.invalid" });
}

/**
 * Reads the `config_file` of a role. It may be a whole configuration of Codex's; only the keys of a role
 * count. Error: `config.invalid`.
 */
export async function readRoleFile(file: string): Promise<AgentRoleConfig> {
  const read = await readTextFile(file, MAX_BYTES);
  if (read.kind === "missing") throw wrongFile(file, "does not exist");
  if (read.kind === "unreadable") throw wrongFile(file, read.reason, read.cause);
  const parsed = agentRoleSchema.omit({ config_file: true }).safeParse(parseToml(read.text, file).table);
  if (parsed.success) return parsed.data;
  throw wrongFile(file, `is not valid:\n${z.prettifyError(parsed.error)}`, parsed.error);
}

function wrongFile(file: string, what: string, cause?: unknown): BrigError {
  return new BrigError(`the file of a role, ${file}, ${what}`, {
    code: "config.invalid",
    hint: "agents.<name>.config_file names it; brig config shows where",
    cause,
  });
}
