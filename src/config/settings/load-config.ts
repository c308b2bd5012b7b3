import { realpath } from "node:fs/promises";
import { dirname, join } from "node:path";
import { BrigError } from "../../errors.js";
import type { ApprovalPolicy } from "../../policy/approval-policy.js";
import { type Config, configSchema } from "../config-schema.js";
import type { Environment } from "../env.js";
import { readConfigFile, resolvePaths } from "../file/config-file.js";
import { chosenProfile } from "../file/profile.js";
import { unknownKeyWarnings, unusedKeyWarnings } from "../file/unknown-keys.js";
import { readWorkspaceFile, type WorkspaceReader } from "../file/workspace-file.js";
import { wrongValues } from "../file/wrong-value.js";
import { shellEnvironmentWarnings } from "../shell-environment.js";
import { parseOverride } from "./overrides.js";
import { merged, plainTable, type SettingTree, settingTree, sourcesOf, without } from "./setting-tree.js";
import type { ConfigSource } from "./sources.js";
import { tightened } from "./workspace-settings.js";

export interface ConfigChoice {
  /** `-p`: the profile whose keys replace the ones above it. Default: the file's own `profile`. */
  profile?: string | undefined;
  /** `-c key=value`: above files, profile and environment. */
  overrides?: readonly string[] | undefined;
  /** What flags say, above everything: the key, dotted, and the flag as it was spelled. Undefined values are left out. */
  flags?: Readonly<Record<string, FlagSetting>> | undefined;
  /** Where relative paths of `-c` start. Default: they are left as they are. */
  cwd?: string | undefined;
  /** The workspace, absolute: its own files may tighten the rest. Default: none are read. */
  workspace?: string | undefined;
  /** Whether no `config.toml` of `$BRIG_HOME` or `$CODEX_HOME` is read. Default: false. */
  ignoresUserFile?: boolean | undefined;
  /** What holds where nobody says when a person is asked; a workspace is measured by it. Default "on-request". */
  approvalPolicy?: ApprovalPolicy | undefined;
  /** How files of the workspace are read. Default: by this process, see `readWorkspaceFile`. */
  readWorkspaceFile?: WorkspaceReader | undefined;
}

interface FlagSetting {
  flag: string;
  value: unknown;
}

export interface LoadedConfig {
  /** All layers as one, frozen through and through. */
  config: Config;
  /** The person's own file; null when there is none. */
  file: string | null;
  /** What a person should know about the configuration, a sentence each. Untrusted text: neutralise before printing. */
  warnings: readonly string[];
  /** Where each value comes from, under its key as it stands in TOML; a default has no entry. */
  sources: ReadonlyMap<string, ConfigSource>;
}

type ConfigEnvironment = Pick<Environment, "brigHome" | "codexHome"> &
  Partial<Pick<Environment, "home" | "openaiBaseUrl">>;

/**
 * Everything that configures brig as one object. Weakest first: defaults, `config.toml` of `$BRIG_HOME` (of `$CODEX_HOME` where that
 * has none), its profile, environment variables, `-c`, flags; then the workspace's own files, which can only tighten, and not what
 * `-c` or a flag says in so many words. No file is an empty one; a file that is there but wrong is `config.invalid`.
 */
export async function loadConfig(
  environment: ConfigEnvironment,
  choice: ConfigChoice = {},
): Promise<LoadedConfig> {
  const { file, tree: fileTree } =
    choice.ignoresUserFile === true ? noUserFile : await readUserFile(environment);
  const overrides = overrideTree(choice, environment);
  const stored = merged(fileTree, overrides);
  for (const layer of [fileTree, overrides]) if (layer.size > 0) checked(layer);
  const profile = await chosenProfile(stored, choice.profile, { file, environment });
  const layers = [
    fileTree,
    profile.tree,
    environmentTree(environment),
    overrides,
    flagTree(choice.flags ?? {}),
  ];
  const own = layers.reduce(stacked);
  checked(own);
  const { tree, warnings } = await tightenedBy(own, { environment, choice });
  const config = checked(tree);
  return {
    config: deepFrozen(config),
    file,
    warnings: [
      ...unknownKeyWarnings(fileTree),
      ...unknownKeyWarnings(overrides),
      ...profile.warnings,
      ...unusedKeyWarnings([fileTree, profile.tree, overrides]),
      ...shellEnvironmentWarnings(config, tree),
      ...warnings,
    ],
    sources: sourcesOf(tree),
  };
}

/** Where a person's own configuration may be, the first one that exists is read. */
export function configFiles({ brigHome, codexHome }: ConfigEnvironment): readonly [string, string] {
  return [join(brigHome, "config.toml"), join(codexHome, "config.toml")];
}

interface UserFile {
  file: string | null;
  tree: SettingTree;
}

const noUserFile: UserFile = { file: null, tree: new Map() };

async function readUserFile(environment: ConfigEnvironment): Promise<UserFile> {
  for (const file of configFiles(environment)) {
    const tree = await readConfigFile(file, environment.home);
    if (tree !== null) return { file, tree };
  }
  return noUserFile;
}

/** Variables that set a value. A variable beats the file, since it is set for fewer calls than a file is kept. */
function environmentTree({ openaiBaseUrl }: ConfigEnvironment): SettingTree {
  return openaiBaseUrl === undefined
    ? new Map()
    : settingTree({ openai_base_url: openaiBaseUrl }, () => ({
        kind: "environment",
        variable: "OPENAI_BASE_URL",
      }));
}

function overrideTree({ overrides = [], cwd }: ConfigChoice, { home }: ConfigEnvironment): SettingTree {
  return overrides
    .map(parseOverride)
    .map((table) => (cwd === undefined ? table : resolvePaths(table, { base: cwd, home })))
    .map((table) => settingTree(table, () => ({ kind: "override" })))
    .reduce(stacked, new Map());
}

function flagTree(flags: Readonly<Record<string, FlagSetting>>): SettingTree {
  return Object.entries(flags)
    .filter(([, { value }]) => value !== undefined)
    .map(([key, { flag, value }]) => {
      const table = key.split(".").reduceRight<unknown>((inner, part) => ({ [part]: inner }), value);
      return settingTree(table as Record<string, unknown>, () => ({ kind: "flag", flag }));
    })
    .reduce(stacked, new Map());
}

/** A mode and a policy file exclude each other: the one that is chosen later stands. */
function stacked(below: SettingTree, above: SettingTree): SettingTree {
  if (above.has("sandbox_mode")) return merged(without(below, "policy"), above);
  return merged(above.has("policy") ? without(below, "sandbox_mode") : below, above);
}

async function tightenedBy(
  own: SettingTree,
  { environment, choice }: { environment: ConfigEnvironment; choice: ConfigChoice },
): Promise<{ tree: SettingTree; warnings: string[] }> {
  const { workspace, readWorkspaceFile: read = readWorkspaceFile, approvalPolicy = "on-request" } = choice;
  if (workspace === undefined || (await isUntrusted(checked(own), workspace)))
    return { tree: own, warnings: [] };
  let tree = own;
  const warnings: string[] = [];
  for (const folder of [".codex", ".brig"]) {
    const file = join(workspace, folder, "config.toml");
    if (configFiles(environment).includes(file)) continue;
    const found = await read(file);
    if (found.kind === "refused") warnings.push(`${file} is not read: ${found.reason}`);
    if (found.kind !== "text") continue;
    const result = tightened(tree, { file, text: found.text, approvalPolicy });
    tree = result.tree;
    warnings.push(...result.warnings);
  }
  return { tree, warnings };
}

/** As the nearest of `projects` at or above the workspace says, under the path that was given or the real one. */
async function isUntrusted({ projects }: Config, workspace: string): Promise<boolean> {
  if (Object.keys(projects).length === 0) return false;
  const physical = await realpath(workspace).catch(() => workspace);
  return [workspace, physical].some((path) => trustLevel(projects, path) === "untrusted");
}

function trustLevel(projects: Config["projects"], path: string): "trusted" | "untrusted" | undefined {
  const level = Object.hasOwn(projects, path) ? projects[path]?.trust_level : undefined;
  const above = dirname(path);
  return level ?? (above === path ? undefined : trustLevel(projects, above));
}

/** What trees hold that were checked already: a tree never changes. */
const checkedTrees = new WeakMap<SettingTree, Config>();

function checked(tree: SettingTree): Config {
  const known = checkedTrees.get(tree);
  if (known !== undefined) return known;
  if (tree.has("policy") && tree.has("sandbox_mode"))
    throw new BrigError("`policy` and `sandbox_mode` exclude each other", {
      code: "config.invalid",
      hint: "a policy file says all that a mode does: leave one of them out",
    });
  const parsed = configSchema.safeParse(plainTable(tree));
  if (!parsed.success) throw wrongValues(parsed.error, { schema: configSchema, tree });
  checkedTrees.set(tree, parsed.data);
  return parsed.data;
}

/** Freezes the object and everything in it. */
function deepFrozen<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  for (const inner of Object.values(value)) deepFrozen(inner);
  return Object.freeze(value);
}
