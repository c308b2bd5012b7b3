import type { ApprovalPolicy } from "../../../sandbox/index.js";
import { type Config, configSchema } from "../config-schema.js";
import { formatKey, type KeyPath } from "../file/key-path.js";
import { parseToml } from "../file/toml-document.js";
import { wrongValues } from "../file/wrong-value.js";
import {
  isTree,
  merged,
  nodeAt,
  plainTable,
  type SettingTree,
  settingsOf,
  settingTree,
  sourceAt,
} from "./setting-tree.js";
import { type ConfigSource, describeSource } from "./sources.js";
import { type Rule, rules, serverRules } from "./tightening-rules.js";

const NAMED_KEYS = 12;
const KEY_CHARS = 60;

interface WorkspaceFile {
  file: string;
  text: string;
  /** The approval policy if nothing sets it. */
  approvalPolicy: ApprovalPolicy;
}

/**
 * Tightens the settings by a file of the workspace. Each key has its own rule; a key that has none, would
 * loosen or cannot be compared is ignored with a warning. `-c` and flags are never overridden. A file that
 * does not parse, or has a wrong value for a key with a rule, is `config.invalid`, since it may have meant to
 * tighten.
 */
export function tightened(
  own: SettingTree,
  { file, text, approvalPolicy }: WorkspaceFile,
): { tree: SettingTree; warnings: string[] } {
  const { table, lineOf } = parseToml(text, file);
  const asked = settingTree(table, (path) => ({ kind: "workspace", file, line: lineOf(path) }));
  const servers = nodeAt(own, ["mcp_servers"]);
  const all = [...rules, ...(isTree(servers) ? [...servers.keys()].flatMap(serverRules) : [])];
  const requested = checkedRequest(asked, all);
  const ignored = keysWithoutRule(asked, all);
  const overridden: string[] = [];
  let tree = own;
  for (const rule of all.filter(({ key }) => nodeAt(asked, key) !== undefined)) {
    const current = configSchema.parse(plainTable(tree));
    const verdict = rule.judge(requested, {
      ...current,
      approval_policy: current.approval_policy ?? approvalPolicy,
    });
    if (verdict === "looser") ignored.push(rule.key);
    if (typeof verdict === "string") continue;
    const source = sourceAt(asked, rule.key);
    const explicit = explicitSource(own, rule);
    if (explicit === null)
      tree = merged(
        tree,
        settingTree(verdict, () => source),
      );
    else
      overridden.push(
        `${describeSource(source)}: ${formatKey(rule.key)} is overridden by ${describeSource(explicit)}`,
      );
  }
  return { tree, warnings: [...overridden, ...ignoredWarning(file, ignored)] };
}

function checkedRequest(asked: SettingTree, all: readonly Rule[]): Config {
  const judged = all.reduce<SettingTree>((tree, { key }) => {
    const node = nodeAt(asked, key);
    if (node === undefined) return tree;
    return merged(tree, nested(key, node));
  }, new Map());
  const parsed = configSchema.safeParse(plainTable(judged));
  if (parsed.success) return parsed.data;
  throw wrongValues(parsed.error, { schema: configSchema, tree: judged });
}

function nested(path: KeyPath, node: ReturnType<typeof nodeAt> & object): SettingTree {
  const [first = "", ...rest] = path;
  return new Map([[first, rest.length === 0 ? node : nested(rest, node)]]);
}

/** The keys that no rule is about. A table without any rule counts as one key. */
function keysWithoutRule(asked: SettingTree, all: readonly Rule[]): KeyPath[] {
  const keys = new Map<string, KeyPath>();
  for (const { path } of settingsOf(asked)) {
    if (all.some(({ key }) => key.every((part, index) => part === path[index]))) continue;
    const lengths = all.filter(({ key }) => isWithin(key, path)).map(({ key }) => key.length);
    const key = path.slice(0, Math.max(1, ...lengths));
    keys.set(formatKey(key), key);
  }
  return [...keys.values()];
}

/** Whether the table of the rule's key contains the path. */
function isWithin(key: KeyPath, path: KeyPath): boolean {
  return key.length > 1 && key.slice(0, -1).every((part, index) => part === path[index]);
}

function explicitSource(own: SettingTree, { key, standsFor = [] }: Rule): ConfigSource | null {
  for (const path of [key, ...standsFor]) {
    const node = nodeAt(own, path);
    const source = node === undefined || isTree(node) ? undefined : node.source;
    if (source?.kind === "override" || source?.kind === "flag") return source;
  }
  return null;
}

function ignoredWarning(file: string, ignored: readonly KeyPath[]): string[] {
  if (ignored.length === 0) return [];
  const names = ignored.slice(0, NAMED_KEYS).map((key) => formatKey(key).slice(0, KEY_CHARS));
  const more = ignored.length > names.length ? ` and ${ignored.length - names.length} more` : "";
  return [`${file}: a workspace's own file can only tighten; ignored: ${names.join(", ")}${more}`];
}
