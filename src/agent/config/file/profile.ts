import { dirname, join } from "node:path";
import { BrigError } from "../../../errors.js";
import type { Environment } from "../../../lib/env.js";
import { suggest } from "../../../lib/suggest.js";
import { isTree, nodeAt, type Setting, type SettingTree } from "../settings/setting-tree.js";
import { readConfigFile } from "./config-file.js";
import { unknownKeyWarnings } from "./unknown-keys.js";

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
