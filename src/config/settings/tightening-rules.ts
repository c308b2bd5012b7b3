import { DEFAULT_MODE, SANDBOX_MODES } from "../../policy/modes.js";
import { parseNetwork } from "../../policy/network.js";
import { compareApprovals, compareModes, compareNetworks, type Strictness } from "../../policy/strictness.js";
import type { Config } from "../config-schema.js";
import type { KeyPath } from "../file/key-path.js";
import type { Table } from "../file/toml-document.js";

/** What becomes of a wish: it changes nothing, it would loosen or cannot be compared, or these keys are set. */
type Verdict = "same" | "looser" | Table;

export interface Rule {
  key: KeyPath;
  /** Other keys that decide about the same thing. */
  standsFor?: readonly KeyPath[];
  judge(wishes: Config, config: Config): Verdict;
}

/** A rule for each key by which a workspace may tighten, and for no other. */
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
  toolOff("apply_patch", false),
  toolOff("read_file", false),
  toolOff("list_dir", false),
  toolOff("grep_files", false),
  toolOff("view_image", false),
  toolOff("update_plan", false),
  toolOff("request_user_input", false),
  toolOff("js_repl", false),
  {
    key: ["allow_login_shell"],
    judge: (wishes, config) => {
      if (wishes.allow_login_shell === config.allow_login_shell) return "same";
      return wishes.allow_login_shell ? "looser" : { allow_login_shell: false };
    },
  },
  smaller("project_doc_max_bytes"),
  smaller("background_terminal_max_timeout"),
  smaller("turn_timeout_ms"),
  smaller("tool_output_token_limit"),
  smaller("lease_seconds"),
];

/** A policy file cannot be compared with a mode. */
function judgeMode({ sandbox_mode: wish = DEFAULT_MODE }: Config, config: Config): Verdict {
  if (config.policy !== undefined) return "looser";
  // The mode read-only opens no network, and would be refused together with one.
  const closesNetwork = wish === "read-only" && config.network !== undefined;
  return verdict(compareModes(wish, config.sandbox_mode ?? DEFAULT_MODE), {
    sandbox_mode: wish,
    ...(closesNetwork ? { network: "none" } : {}),
  });
}

/** The mode can still change while the configuration holds, so the wish has to be stricter under each. */
function judgeApproval({ approval_policy: wish }: Config, { approval_policy: current }: Config): Verdict {
  if (wish === undefined || current === undefined) return wish === current ? "same" : "looser";
  const modes = SANDBOX_MODES;
  return verdict(compareApprovals({ policy: wish, modes }, { policy: current, modes }), {
    approval_policy: wish,
  });
}

function verdict(strictness: Strictness, wish: Table): Verdict {
  if (strictness === "same") return "same";
  return strictness === "stricter" ? wish : "looser";
}

function judgeNetwork({ network: wish }: Config, { network }: Config): Verdict {
  if (wish === undefined || wish === network) return "same";
  if (wish === "none") return { network: wish };
  const wanted = parseNetwork(wish);
  const current = network === undefined ? undefined : parseNetwork(network);
  if (wanted.kind !== "parsed" || current?.kind !== "parsed") return "looser";
  return verdict(compareNetworks(wanted.network, current.network), { network: wish });
}

function judgeNetworkAccess(wishes: Config, { sandbox_workspace_write, network }: Config): Verdict {
  if (wishes.sandbox_workspace_write.network_access)
    return sandbox_workspace_write.network_access ? "same" : "looser";
  const isOpen = network !== undefined && network !== "none";
  if (!sandbox_workspace_write.network_access && !isOpen) return "same";
  return { sandbox_workspace_write: { network_access: false }, ...(isOpen ? { network: "none" } : {}) };
}

const searchModes = ["disabled", "cached", "live"] as const;

/** Both keys decide about the search; the one of `tools` has the last word, so that is the one to set. */
function judgeWebSearch(table: "web_search" | "tools"): Rule["judge"] {
  return (wishes, config) => {
    const wish = searchMode(table === "tools" ? wishes.tools.web_search : wishes.web_search);
    const current = searchMode(config.tools.web_search) ?? config.web_search ?? "disabled";
    if (wish === undefined || wish === current) return "same";
    return searchModes.indexOf(wish) < searchModes.indexOf(current)
      ? { tools: { web_search: wish } }
      : "looser";
  };
}

function searchMode(setting: Config["tools"]["web_search"]): (typeof searchModes)[number] | undefined {
  return typeof setting === "boolean" ? (setting ? "live" : "disabled") : setting;
}

/** A tool can be turned off. Which of its kinds is the stricter one cannot be said. */
function toolOff(tool: keyof Config["tools"], off: false | "disabled"): Rule {
  return {
    key: ["tools", tool],
    judge: (wishes, config) => {
      if (wishes.tools[tool] === config.tools[tool]) return "same";
      return wishes.tools[tool] === off ? { tools: { [tool]: off } } : "looser";
    },
  };
}

type Limit =
  | "project_doc_max_bytes"
  | "background_terminal_max_timeout"
  | "turn_timeout_ms"
  | "tool_output_token_limit"
  | "lease_seconds";

/** Where there is no number to compare with, the model's own counts, which is not known here. */
function smaller(key: Limit): Rule {
  return {
    key: [key],
    judge: (wishes, config) => {
      const wish = wishes[key];
      const current = config[key];
      if (wish === undefined || wish === current) return "same";
      return current !== undefined && wish < current ? { [key]: wish } : "looser";
    },
  };
}
