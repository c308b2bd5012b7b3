import { realpath } from "node:fs/promises";
import { dirname, join } from "node:path";
import { parse, TomlError } from "smol-toml";
import { BrigError } from "../../../errors.js";
import type { Environment } from "../../../lib/env.js";
import type { ApprovalPolicy } from "../../../sandbox/index.js";
import { chosenProfile, configTree, readConfigFile, resolvePaths } from "../config-file.js";
import { type Config, configSchema, type McpServerConfig } from "../config-schema.js";
import { formatKey, KEY_PATTERN, type KeyPath, parseKey } from "../key-path.js";
import { shellEnvironmentWarnings } from "../shell-environment.js";
import type { Table } from "../toml-document.js";
import { unknownKeyWarnings, unusedKeyNotes } from "../unknown-keys.js";
import { readWorkspaceFile, type WorkspaceReader } from "../workspace-file.js";
import { wrongValues } from "../wrong-value.js";
import {
  merged,
  nodeAt,
  plainTable,
  type SettingTree,
  settingTree,
  sourceAt,
  sourcesOf,
  without,
} from "./setting-tree.js";
import { type ConfigSource, describeSource } from "./sources.js";
import { tightened } from "./workspace-settings.js";

export interface ConfigChoice {
  /** `-p`: the profile whose keys override those of the file. Default: the file's `profile`. */
  profile?: string | undefined;
  /** `-c key=value`, and what a client's call sets: tables of keys that override files, profile and environment. */
  overrides?: readonly Table[] | undefined;
  /** Flags by the dotted key that they set. They override everything else. Undefined values are left out. */
  flags?: Readonly<Record<string, FlagSetting>> | undefined;
  /** The directory for relative paths in `overrides`. Default: they stay relative. */
  cwd?: string | undefined;
  /**
   * The absolute path of the workspace, whose files may tighten the configuration. Default: none are read.
   */
  workspace?: string | undefined;
  /** Whether to skip `config.toml` of `$BRIG_HOME` and `$CODEX_HOME`. Default: false. */
  ignoresUserFile?: boolean | undefined;
  /** The approval policy if nothing sets it; a workspace may only be stricter. Default "on-request". */
  approvalPolicy?: ApprovalPolicy | undefined;
  /** Reads the files of the workspace. Default: `readWorkspaceFile`. */
  readWorkspaceFile?: WorkspaceReader | undefined;
}

interface FlagSetting {
  flag: string;
  value: unknown;
}

export interface LoadedConfig {
  /** All layers merged; deeply frozen. */
  config: Config;
  /** The user's file; null if there is none. */
  file: string | null;
  /** Sentences for the user. They contain untrusted text: neutralise them before printing. */
  warnings: readonly string[];
  /** Sentences like those in `warnings`, about things that are no mistakes. Shown once a session, when it begins. */
  notes: readonly string[];
  /** The source of each value, by its key in TOML syntax. A default has no entry. */
  sources: ReadonlyMap<string, ConfigSource>;
}

type ConfigEnvironment = Pick<Environment, "brigHome" | "codexHome"> &
  Partial<Pick<Environment, "home" | "openaiBaseUrl">>;

/**
 * Merges, weakest first: defaults, `config.toml` of `$BRIG_HOME` (or of `$CODEX_HOME` if that has none), its
 * profile, environment variables, `-c`, flags. Then the workspace's own files may tighten what neither `-c`
 * nor a flag sets. A missing file is like an empty one. Error: `config.invalid` for a file with mistakes.
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
  checkMcpServers(checked(own), own);
  const { tree, warnings } = await tightenedBy(own, { environment, choice });
  const config = checked(tree);
  return {
    config: deepFrozen(config),
    file,
    warnings: [
      ...unknownKeyWarnings(fileTree),
      ...unknownKeyWarnings(overrides),
      ...profile.warnings,
      ...shellEnvironmentWarnings(config, tree),
      ...warnings,
    ],
    notes: unusedKeyNotes([fileTree, profile.tree, overrides]),
    sources: sourcesOf(tree),
  };
}

/**
 * Checks what a configuration file is to contain before it is written there, and gives a sentence for each key that brig does not know. Error:
 * `config.invalid`.
 */
export function checkConfigText(text: string, file: string, home: string | undefined): string[] {
  const tree = configTree(text, file, home);
  checkMcpServers(checked(tree), tree);
  return unknownKeyWarnings(tree);
}

/** The places of the user's configuration. The first file that exists is read. */
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

/** A mode and a policy file exclude each other: the one in the stronger layer wins. */
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

/** The nearest of `projects` at or above the workspace decides, by its given or its real path. */
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

/** Configurations by the tree they were made from. Trees never change. */
const checkedTrees = new WeakMap<SettingTree, Config>();

function checked(tree: SettingTree): Config {
  const known = checkedTrees.get(tree);
  if (known !== undefined) return known;
  if (tree.has("policy") && tree.has("sandbox_mode"))
    throw new BrigError("`policy` and `sandbox_mode` exclude each other", {
      code: "config.invalid",
      hint: "a policy file decides everything that a mode does: leave one of them out",
    });
  const parsed = configSchema.safeParse(plainTable(tree));
  if (!parsed.success) throw wrongValues(parsed.error, { schema: configSchema, tree });
  checkedTrees.set(tree, parsed.data);
  return parsed.data;
}

function deepFrozen<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  for (const inner of Object.values(value)) deepFrozen(inner);
  return Object.freeze(value);
}

type ServerKey = keyof McpServerConfig;

const stdioKeys: readonly ServerKey[] = ["args", "env", "env_vars", "cwd", "sandbox", "image", "network"];
const httpKeys: readonly ServerKey[] = ["bearer_token_env_var", "http_headers", "env_http_headers"];
const ownContainerKeys: readonly ServerKey[] = ["image", "network"];

/**
 * Refuses MCP servers whose keys do not fit together. The layers are checked only once they are merged,
 * because a layer may have just a part of a server, such as `-c mcp_servers.docs.enabled=false`. Error:
 * `config.invalid`.
 */
function checkMcpServers({ mcp_servers: servers }: Config, tree: SettingTree): void {
  for (const [name, server] of Object.entries(servers)) {
    const path = ["mcp_servers", name];
    const refuse = (key: KeyPath, what: string, hint: string): never => {
      const where = describeSource(sourceAt(tree, key));
      throw new BrigError(`${where}: ${formatKey(key)} ${what}`, { code: "config.invalid", hint });
    };
    const firstSet = (keys: readonly ServerKey[]) =>
      keys.map((key) => [...path, key]).find((key) => nodeAt(tree, key) !== undefined);
    const { command, url, sandbox } = server;
    if (command === undefined && url === undefined)
      refuse(path, "has neither a command nor a url", "a stdio server needs command, an HTTP server url");
    if (command !== undefined && url !== undefined)
      refuse([...path, "url"], "excludes command", "leave one of them out");
    const misplaced = firstSet(url === undefined ? httpKeys : stdioKeys);
    if (misplaced !== undefined)
      refuse(misplaced, `is for ${url === undefined ? "an HTTP" : "a stdio"} server`, "leave it out");
    const needless = sandbox === "own" ? undefined : firstSet(ownContainerKeys);
    if (needless !== undefined)
      refuse(needless, "is for a server in a container of its own", 'leave it out, or set sandbox = "own"');
  }
}

const assignmentPattern = new RegExp(`^\\s*(${KEY_PATTERN})\\s*=([\\s\\S]*)$`);

/** Parses `key=value`: a dotted key, and a TOML value or plain text. Error: `usage.invalid`. */
export function parseOverride(assignment: string): Table {
  const [, key = "", text = ""] = assignmentPattern.exec(assignment) ?? [];
  const path = configKey(key);
  if (path === null)
    // The value is not shown, since it may be a secret.
    throw new BrigError(`-c ${assignment.replace(/=[\s\S]*/, "=…")} is not key=value`, {
      code: "usage.invalid",
      hint: "for example: -c model_reasoning_effort=high, -c 'sandbox_workspace_write.writable_roots=[\"/data\"]'",
    });
  return path.reduceRight<unknown>(
    (value, part) => Object.fromEntries([[part, value]]),
    configValue(text.trim()),
  ) as Table;
}

const keyPattern = new RegExp(`^${KEY_PATTERN}$`);

/** The parts of a key as a person writes it; null for what is no key. */
export function configKey(key: string): KeyPath | null {
  if (!keyPattern.test(key)) return null;
  try {
    return parseKey(key);
  } catch (error) {
    if (error instanceof TomlError) return null;
    throw error;
  }
}

/** A value as a person writes it: in TOML, and what is not TOML is text. */
export function configValue(text: string): unknown {
  try {
    const table = parse(`value = ${text}`);
    // This check is needed because a second line could set another key.
    return Object.keys(table).length === 1 ? table.value : text;
  } catch (error) {
    if (error instanceof TomlError) return text;
    throw error;
  }
}
