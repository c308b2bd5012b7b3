import type { ApprovalPolicy, Strictness } from "../../../sandbox/index.js";
import {
  compareApprovals,
  compareModes,
  compareNetworks,
  DEFAULT_MODE,
  parseNetwork,
  SANDBOX_MODES,
} from "../../../sandbox/index.js";
import { type Config, configSchema, type McpServerConfig } from "../config-schema.js";
import { formatKey, type KeyPath } from "../key-path.js";
import { parseToml, type Table } from "../toml-document.js";
import { wrongValues } from "../wrong-value.js";
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

/** "looser" includes values that cannot be compared. A table has the keys to set. */
type Verdict = "same" | "looser" | Table;

interface Rule {
  key: KeyPath;
  /** Other keys that decide the same thing. */
  standsFor?: readonly KeyPath[];
  judge(requested: Config, config: Config): Verdict;
}

const onOffTools = [
  "apply_patch",
  "read_file",
  "list_dir",
  "grep_files",
  "view_image",
  "update_plan",
  "request_user_input",
  "js_repl",
  "multi_agent",
  "mcp_resources",
] as const;

const limits = [
  "project_doc_max_bytes",
  "background_terminal_max_timeout",
  "turn_timeout_ms",
  "tool_output_token_limit",
  "lease_seconds",
] as const;

/**
 * The keys with which a workspace may tighten the configuration. All others are ignored, except those of
 * `serverRules`.
 */
export const rules: readonly Rule[] = [
  { key: ["sandbox_mode"], standsFor: [["policy"]], judge: judgeMode },
  { key: ["approval_policy"], judge: judgeApproval },
  { key: ["network"], standsFor: [["sandbox_workspace_write", "network_access"]], judge: judgeNetwork },
  {
    key: ["sandbox_workspace_write", "network_access"],
    standsFor: [["network"]],
    judge: judgeNetworkAccess,
  },
  { key: ["web_search"], standsFor: [["tools", "web_search"]], judge: judgeWebSearch("web_search") },
  { key: ["tools", "web_search"], standsFor: [["web_search"]], judge: judgeWebSearch("tools") },
  toolOff("shell", "disabled"),
  ...onOffTools.map((tool) => toolOff(tool, false)),
  {
    key: ["allow_login_shell"],
    judge: (requested, config) => {
      if (requested.allow_login_shell === config.allow_login_shell) return "same";
      return requested.allow_login_shell ? "looser" : { allow_login_shell: false };
    },
  },
  ...limits.map(smaller),
];

/**
 * The keys with which a workspace may tighten an MCP server that the user has configured. It cannot add a
 * server, because that would start programs of its choice.
 */
export function serverRules(server: string): readonly Rule[] {
  const rule = <Key extends "enabled" | "enabled_tools" | "disabled_tools">(
    name: Key,
    tighter: (request: McpServerConfig[Key], current: McpServerConfig[Key]) => boolean,
  ): Rule => ({
    key: ["mcp_servers", server, name],
    judge: ({ mcp_servers: requested }, { mcp_servers: servers }) => {
      const [request, current] = [requested[server]?.[name], servers[server]?.[name]];
      if (JSON.stringify(request) === JSON.stringify(current)) return "same";
      const isTighter = tighter(request as McpServerConfig[Key], current as McpServerConfig[Key]);
      return isTighter ? { mcp_servers: { [server]: { [name]: request } } } : "looser";
    },
  });
  return [
    rule("enabled", (request) => !request),
    rule("enabled_tools", (request = [], current = request) =>
      request.every((tool) => current.includes(tool)),
    ),
    rule("disabled_tools", (request, current) => current.every((tool) => request.includes(tool))),
  ];
}

/** A policy file cannot be compared with a mode. */
function judgeMode({ sandbox_mode: request = DEFAULT_MODE }: Config, config: Config): Verdict {
  if (config.policy !== undefined) return "looser";
  // The mode read-only does not permit a network, so the sandbox would be refused.
  const closesNetwork = request === "read-only" && config.network !== undefined;
  return verdict(compareModes(request, config.sandbox_mode ?? DEFAULT_MODE), {
    sandbox_mode: request,
    ...(closesNetwork ? { network: "none" } : {}),
  });
}

/**
 * The requested policy must be stricter in every mode, because the mode may change during the session, and
 * also for calls of MCP servers, because an editor may add servers.
 */
function judgeApproval({ approval_policy: request }: Config, { approval_policy: current }: Config): Verdict {
  if (request === undefined || current === undefined) return request === current ? "same" : "looser";
  const modes = SANDBOX_MODES;
  const strictness = compareApprovals(
    { policy: request, modes },
    { policy: current, modes },
    { hasMcpServers: true },
  );
  return verdict(strictness, { approval_policy: request });
}

function verdict(strictness: Strictness, request: Table): Verdict {
  if (strictness === "same") return "same";
  return strictness === "stricter" ? request : "looser";
}

function judgeNetwork({ network: request }: Config, { network }: Config): Verdict {
  if (request === undefined || request === network) return "same";
  if (request === "none") return { network: request };
  const wanted = parseNetwork(request);
  const current = network === undefined ? undefined : parseNetwork(network);
  if (wanted.kind !== "parsed" || current?.kind !== "parsed") return "looser";
  return verdict(compareNetworks(wanted.network, current.network), { network: request });
}

function judgeNetworkAccess(requested: Config, { sandbox_workspace_write, network }: Config): Verdict {
  if (requested.sandbox_workspace_write.network_access)
    return sandbox_workspace_write.network_access ? "same" : "looser";
  const isOpen = network !== undefined && network !== "none";
  if (!sandbox_workspace_write.network_access && !isOpen) return "same";
  return { sandbox_workspace_write: { network_access: false }, ...(isOpen ? { network: "none" } : {}) };
}

const searchModes = ["disabled", "cached", "live"] as const;

/** Two keys decide about the search. The one in `tools` overrides the other, so that one is set. */
function judgeWebSearch(table: "web_search" | "tools"): Rule["judge"] {
  return (requested, config) => {
    const request = searchMode(table === "tools" ? requested.tools.web_search : requested.web_search);
    const current = searchMode(config.tools.web_search) ?? config.web_search ?? "disabled";
    if (request === undefined || request === current) return "same";
    return searchModes.indexOf(request) < searchModes.indexOf(current)
      ? { tools: { web_search: request } }
      : "looser";
  };
}

function searchMode(setting: Config["tools"]["web_search"]): (typeof searchModes)[number] | undefined {
  return typeof setting === "boolean" ? (setting ? "live" : "disabled") : setting;
}

/** A workspace can turn a tool off. Of two variants of a tool neither is stricter. */
function toolOff(tool: keyof Config["tools"], off: false | "disabled"): Rule {
  return {
    key: ["tools", tool],
    judge: (requested, config) => {
      if (requested.tools[tool] === config.tools[tool]) return "same";
      return requested.tools[tool] === off ? { tools: { [tool]: off } } : "looser";
    },
  };
}

/** Rule for a limit. If there is no number to compare with, the model's own limit counts, which is not known here. */
function smaller(key: (typeof limits)[number]): Rule {
  return {
    key: [key],
    judge: (requested, config) => {
      const request = requested[key];
      const current = config[key];
      if (request === undefined || request === current) return "same";
      return current !== undefined && request < current ? { [key]: request } : "looser";
    },
  };
}
