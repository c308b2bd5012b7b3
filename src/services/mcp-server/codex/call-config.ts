import type { Config, KeyPath } from "../../../agent/index.js";
import { formatKey, KEY_PATTERN, parseKey } from "../../../agent/index.js";
import { invalidUsage } from "../../../errors.js";

/**
 * Whether a call may set a key: always, never, or if the function returns true for the rest of the key and
 * the value.
 */
type Rule = "free" | "refused" | ((rest: KeyPath, value: unknown) => boolean);

/**
 * The arguments of a call are written by a model, so they may decide what the session is like, but not what
 * runs on this machine, whom this machine talks to, with which secrets, or which of its files brig reads.
 */
const rules: Readonly<Record<keyof Config, Rule>> = {
  // A server may run on this machine, get its secrets, or be reached from it. Turning one off is harmless.
  mcp_servers: ([, key, ...rest], value) => key === "enabled" && rest.length === 0 && value === false,
  // The key of the endpoint, and everything that is said, would go to an address of the model's choice.
  model_providers: "refused",
  openai_base_url: "refused",
  chatgpt_base_url: "refused",
  oauth: "refused",
  policy: "refused",
  egress: "refused",
  otel: "refused",
  setup: "refused",
  runtime: "refused",
  git: "refused",
  network: (_, value) => value === "none",
  sandbox_workspace_write: ([key], value) => key !== "network_access" || value === false,
  workspace_kind: (_, value) => value === "overlay",
  model_instructions_file: "refused",
  // The file of a role would be read on this machine.
  agents: (rest) => !rest.includes("config_file"),
  // A profile could set any of the other keys. A call may still choose one of the user's own profiles.
  profiles: "refused",
  projects: "refused",

  profile: "free",
  model: "free",
  model_provider: "free",
  model_context_window: "free",
  model_auto_compact_token_limit: "free",
  model_reasoning_effort: "free",
  model_reasoning_summary: "free",
  model_verbosity: "free",
  model_supports_reasoning_summaries: "free",
  instructions: "free",
  developer_instructions: "free",
  compact_prompt: "free",
  service_tier: "free",
  approval_policy: "free",
  sandbox_mode: "free",
  experimental_supported_tools: "free",
  container_image: "free",
  lease_seconds: "free",
  shell_environment_policy: "free",
  allow_login_shell: "free",
  background_terminal_max_timeout: "free",
  turn_timeout_ms: "free",
  tool_output_token_limit: "free",
  features: "free",
  tools: "free",
  web_search: "free",
  project_doc_max_bytes: "free",
  project_doc_fallback_filenames: "free",
  project_root_markers: "free",
  include_environment_context: "free",
  include_permissions_instructions: "free",
  history: "free",
  images: "free",
  prices: "free",
  templates: "refused",
};

const wholeKey = new RegExp(`^${KEY_PATTERN}$`);

/**
 * The settings as tables of config.toml. Error: `usage.invalid` for a name that is not a key, a setting without a value, and
 * a key that a call may not set.
 */
export function callOverrides(config: Readonly<Record<string, unknown>>): Record<string, unknown>[] {
  return Object.entries(config).map(([key, value]) => {
    if (!wholeKey.test(key))
      throw invalidUsage(
        `${JSON.stringify(key.slice(0, 200))} is not a key of the configuration`,
        "for example: model_reasoning_effort, or tools.view_image",
      );
    const path = parseKey(key);
    for (const setting of settingsIn(path, value)) check(setting);
    return path.reduceRight<unknown>((inner, part) => Object.fromEntries([[part, inner]]), value) as Record<
      string,
      unknown
    >;
  });
}

interface Setting {
  path: KeyPath;
  value: unknown;
}

function settingsIn(path: KeyPath, value: unknown): Setting[] {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return [{ path, value }];
  return Object.entries(value).flatMap(([key, inner]) => settingsIn([...path, key], inner));
}

/** An unknown key is a warning as in every configuration. */
function check({ path: [name = "", ...rest], value }: Setting): void {
  const key = formatKey([name, ...rest]).slice(0, 200);
  if (value === null)
    throw invalidUsage(
      `the setting ${JSON.stringify(key)} has no value`,
      "leave it out: the configuration has no null",
    );
  const rule: Rule = Object.hasOwn(rules, name) ? rules[name as keyof Config] : "free";
  if (rule === "free" || (typeof rule === "function" && rule(rest, value))) return;
  throw invalidUsage(
    `the setting ${key} is not for a call to decide: it reaches beyond the sandbox`,
    "leave it out; the user can give it to the server: brig mcp-server -c KEY=VALUE",
  );
}
