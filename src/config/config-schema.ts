import { z } from "zod";

const retries = z.int().min(0).max(100);
const texts = z.record(z.string(), z.string());

/** A key of Codex's that brig accepts and does nothing with, so that one file serves both. */
const unused = z.unknown().optional();

export const providerSchema = z.looseObject({
  name: z.string().optional(),
  base_url: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe("Where requests go, up to and without /responses"),
  env_key: z.string().optional().describe("The environment variable that holds the API key"),
  env_key_instructions: z.string().optional().describe("Where to get a key"),
  experimental_bearer_token: z.string().optional().describe("The API key itself"),
  wire_api: z.enum(["responses", "chat"]).default("responses"),
  query_params: texts.default({}),
  http_headers: texts.default({}),
  env_http_headers: texts.default({}).describe("Header → environment variable that holds its value"),
  request_max_retries: retries.default(4),
  stream_max_retries: retries.default(5),
  stream_idle_timeout_ms: z.int().min(1).default(300_000),
  auth: unused,
  requires_openai_auth: unused,
  supports_websockets: unused,
  websocket_connect_timeout_ms: unused,
});

const workspaceWriteSchema = z.looseObject({
  writable_roots: z.array(z.string()).default([]),
  network_access: z.boolean().default(false),
  exclude_slash_tmp: unused,
  exclude_tmpdir_env_var: unused,
});

const onOrOff = z.boolean().optional();
const webSearchMode = z.enum(["cached", "live", "disabled"]);

const shared = {
  model: z.string().min(1).optional(),
  model_provider: z.string().optional().describe("Default: openai"),
  model_reasoning_effort: z.string().optional(),
  model_reasoning_summary: z.enum(["auto", "concise", "detailed", "none"]).optional(),
  model_verbosity: z.enum(["low", "medium", "high"]).optional(),
  service_tier: z.string().optional(),
  openai_base_url: z.url({ protocol: /^https?$/ }).optional(),
  sandbox_mode: z.enum(["read-only", "workspace-write", "danger-full-access"]).optional(),
  sandbox_workspace_write: workspaceWriteSchema.optional(),
  tool_output_token_limit: z.int().min(1).optional(),
  allow_login_shell: z.boolean().optional(),
  tools: z
    .looseObject({
      shell: z
        .enum(["unified_exec", "shell_command", "default", "local", "disabled"])
        .optional()
        .describe("Which shell tools the model is told of. Default: unified_exec"),
      apply_patch: z
        .union([z.boolean(), z.enum(["freeform", "function"])])
        .optional()
        .describe("Default: as text of a grammar, for models that take that, else as a function"),
      read_file: onOrOff,
      list_dir: onOrOff,
      grep_files: onOrOff,
      view_image: onOrOff,
      update_plan: onOrOff,
      request_user_input: onOrOff.describe("Default: on where somebody can answer"),
      js_repl: onOrOff.describe("Default: off"),
      web_search: z
        .union([z.boolean(), webSearchMode])
        .optional()
        .describe("The provider's search; true is live. Default: `web_search`, else disabled"),
    })
    .optional(),
  web_search: webSearchMode.optional(),
};

/** Codex's keys beyond those that brig uses. */
const unusedKeys = Object.fromEntries(
  [
    "agents",
    "approval_policy",
    "approvals_reviewer",
    "background_terminal_max_timeout",
    "compact_prompt",
    "developer_instructions",
    "features",
    "history",
    "hooks",
    "include_environment_context",
    "include_permissions_instructions",
    "instructions",
    "log_dir",
    "mcp_servers",
    "model_auto_compact_token_limit",
    "model_context_window",
    "model_instructions_file",
    "model_supports_reasoning_summaries",
    "notify",
    "permissions",
    "personality",
    "project_doc_fallback_filenames",
    "project_doc_max_bytes",
    "project_root_markers",
    "projects",
    "review_model",
    "shell_environment_policy",
    "sqlite_home",
    "tui",
  ].map((key) => [key, unused]),
);

const profileSchema = z.looseObject({ ...unusedKeys, ...shared });

/** `config.toml`, with Codex's keys. An unknown key is kept aside: it is warned about, since it may be a newer one. */
export const configSchema = z.looseObject({
  ...unusedKeys,
  ...shared,
  model_providers: z.record(z.string(), providerSchema).default({}),
  profile: z.string().optional().describe("The profile that is used by default"),
  profiles: z.record(z.string(), profileSchema).default({}),
});

export type Config = z.infer<typeof configSchema>;
export type ProviderConfig = z.infer<typeof providerSchema>;
