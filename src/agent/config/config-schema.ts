import { z } from "zod";
import { httpUrl, milliseconds, unused } from "../../lib/setting-kinds.js";
import {
  APPROVAL_POLICIES,
  DEFAULT_MODE,
  egressSchema,
  granularSchema,
  SANDBOX_MODES,
} from "../../sandbox/index.js";
import { pricesSchema } from "../model/prices/prices-schema.js";
import { providerSchema } from "../model/provider-schema.js";
import { agentsSchema } from "./agents-schema.js";
import { imagesSchema } from "./images-schema.js";
import { mcpServersSchema } from "./mcp-servers-schema.js";
import { otelSchema } from "./otel-schema.js";
import { networkSetting, setupSchema } from "./setup-schema.js";
import { toolsSchema, webSearchMode } from "./tools-schema.js";

export const DEFAULT_MODEL = "gpt-5.2-codex";

/** `fallback` describes a default that is decided elsewhere. The value of a secret is never shown. */
export interface KeyNotes {
  description?: string | undefined;
  fallback?: string | undefined;
  isSecret?: boolean | undefined;
}

const tokens = z.int().min(1);
const fileName = z
  .string()
  .refine((name) => name !== "" && name !== "." && name !== ".." && !/[/\0]/.test(name), {
    error: "it must be the name of one directory entry",
  });
const variables = z.record(
  z.string().regex(/^[^=\0]+$/, { error: "it must be the name of a variable" }),
  z.string().meta({ isSecret: true }),
);

const workspaceWriteSchema = z.object({
  writable_roots: z
    .array(z.string().min(1))
    .default([])
    .describe("More writable directories; relative paths start at the file's directory"),
  network_access: z.boolean().default(false).describe("Whether commands may use the network"),
  exclude_slash_tmp: z
    .boolean()
    .default(false)
    .describe("No effect: a sandbox has its own `/tmp`, never the machine's"),
  exclude_tmpdir_env_var: z.boolean().default(false).describe("No effect, for the same reason"),
});

const shellEnvironmentSchema = z.object({
  inherit: z
    .enum(["all", "core", "none"])
    .default("none")
    .describe("No variable of this machine ever enters a sandbox; `all` and `core` cause a warning"),
  ignore_default_excludes: z.boolean().default(true).describe("No effect, since nothing is inherited"),
  exclude: z.array(z.string()).default([]).describe("No effect, since nothing is inherited"),
  set: variables.default({}).describe("Environment variables of every command"),
  include_only: z
    .array(z.string())
    .default([])
    .describe("If not empty, only the variables of `set` whose names match one of these patterns (`*`, `?`)"),
  experimental_use_profile: unused,
});

/** The keys that are allowed both at the top of the file and in a profile. */
const shared = {
  model: z.string().min(1).optional().describe("The model to use").meta({ fallback: DEFAULT_MODEL }),
  model_provider: z
    .string()
    .min(1)
    .optional()
    .describe("The model's provider: `openai`, `ollama`, `lmstudio`, or one of `model_providers`")
    .meta({ fallback: "openai" }),
  model_context_window: tokens
    .optional()
    .describe("The model's context window, in tokens")
    .meta({ fallback: "by model" }),
  model_auto_compact_token_limit: tokens
    .optional()
    .describe("The number of tokens at which older turns are summarised")
    .meta({ fallback: "90 % of the window" }),
  model_reasoning_effort: z
    .string()
    .min(1)
    .optional()
    .describe("How much the model reasons, for example `low`, `medium`, `high`")
    .meta({ fallback: "the provider's" }),
  model_reasoning_summary: z
    .enum(["auto", "concise", "detailed", "none"])
    .optional()
    .describe("How the reasoning is summarised")
    .meta({ fallback: "the provider's" }),
  model_verbosity: z
    .enum(["low", "medium", "high"])
    .optional()
    .describe("How long answers are")
    .meta({ fallback: "the provider's" }),
  model_supports_reasoning_summaries: z
    .boolean()
    .optional()
    .describe("Whether the model takes reasoning settings")
    .meta({ fallback: "by model" }),
  model_instructions_file: z
    .string()
    .min(1)
    .optional()
    .describe("A file that replaces brig's own instructions; relative to the directory of config.toml"),
  instructions: z.string().optional().describe("Your own instructions, in addition to AGENTS.md"),
  developer_instructions: z.string().optional().describe("A developer message before the first prompt"),
  compact_prompt: z
    .string()
    .optional()
    .describe("Replaces the prompt that asks for a summary")
    .meta({ fallback: "brig's own" }),
  service_tier: z.string().optional().describe("Passed to the provider"),
  openai_base_url: httpUrl
    .optional()
    .describe("The base URL of the provider `openai`")
    .meta({ fallback: "https://api.openai.com/v1" }),
  chatgpt_base_url: httpUrl
    .optional()
    .describe("The base URL after a ChatGPT login")
    .meta({ fallback: "OpenAI's" }),

  approval_policy: z
    .union([z.enum(APPROVAL_POLICIES), granularSchema])
    .optional()
    .describe(
      "When a person is asked for approval; with `granular`, what is not true is refused without asking",
    )
    .meta({ fallback: "on-request; `brig run`: never" }),
  sandbox_mode: z
    .enum(SANDBOX_MODES)
    .optional()
    .describe("What commands may do")
    .meta({ fallback: DEFAULT_MODE }),
  sandbox_workspace_write: workspaceWriteSchema.prefault({}).describe("Settings of the mode workspace-write"),
  policy: z
    .string()
    .min(1)
    .optional()
    .describe("A policy file in place of `sandbox_mode`; relative to the directory of config.toml"),
  network: networkSetting
    .optional()
    .describe("`none`, `full`, `allowlist:HOST,…` or `learn`, if the policy permits it")
    .meta({ fallback: "the policy's" }),
  setup: setupSchema.prefault({}).describe("The set-up of new sessions"),
  experimental_supported_tools: z
    .array(z.string().min(1))
    .optional()
    .describe(
      "Only those of `read_file`, `list_dir` and `grep_files` that are named are on, unless `tools` says otherwise",
    )
    .meta({ fallback: "all three" }),
  workspace_kind: z
    .enum(["bind", "overlay"])
    .default("bind")
    .describe(
      "`overlay`: commands see the workspace's files, but change only copies in volumes of the engine",
    ),
  git: z
    .enum(["protected", "branch"])
    .default("protected")
    .describe(
      "`branch`: commands write to a copy of the repository, and new commits arrive as the branch `brig/ID`",
    ),
  container_image: z
    .string()
    .min(1)
    .optional()
    .describe("The image commands run in")
    .meta({ fallback: "brig/base" }),
  runtime: z
    .string()
    .min(1)
    .optional()
    .describe("The OCI runtime, for example `runsc`")
    .meta({ fallback: "the engine's" }),
  lease_seconds: z
    .int()
    .min(1)
    .max(7 * 24 * 3600)
    .default(60)
    .describe("Seconds after which a container ends when brig is gone"),

  shell_environment_policy: shellEnvironmentSchema.prefault({}).describe("The environment of commands"),
  allow_login_shell: z.boolean().default(true).describe("Whether a model may ask for a login shell"),
  background_terminal_max_timeout: milliseconds
    .default(300_000)
    .describe("Milliseconds that one poll of a running command may wait"),
  turn_timeout_ms: milliseconds
    .default(86_400_000)
    .describe("Milliseconds that one turn may take, with all its requests and tool calls"),
  tool_output_token_limit: tokens
    .optional()
    .describe("The most tokens of a tool's output that the model gets")
    .meta({ fallback: "by model" }),
  features: z
    .object({
      multi_agent: z
        .boolean()
        .optional()
        .describe("The same as `tools.multi_agent`, which wins")
        .meta({ fallback: "true" }),
    })
    .catchall(unused)
    .prefault({})
    .describe("Codex's switches"),
  tools: toolsSchema.prefault({}).describe("Which tools the model has"),
  web_search: webSearchMode.optional().describe("The provider's web search").meta({ fallback: "disabled" }),

  project_doc_max_bytes: z
    .int()
    .min(0)
    .default(32_768)
    .describe("The most bytes of AGENTS.md files that the model gets; 0 for none"),
  project_doc_fallback_filenames: z
    .array(fileName)
    .default([])
    .describe("Files to read in a directory that has no AGENTS.md"),
  project_root_markers: z
    .array(fileName)
    .default([".git"])
    .describe("Names of files or directories that mark the root of a project"),
  include_environment_context: z
    .boolean()
    .default(true)
    .describe("Whether the model is told the directory, the date and the network setting"),
  include_permissions_instructions: z
    .boolean()
    .default(true)
    .describe("Whether the model is told what it may do"),
};

const profileSchema = z.object(shared);

/** `config.toml`, with Codex's keys. An unknown key may be a newer one, so it only causes a warning. */
export const configSchema = z.object({
  ...shared,
  history: z
    .object({
      persistence: z.enum(["save-all", "none"]).default("save-all").describe("Whether sessions are kept"),
      max_bytes: unused,
    })
    .prefault({})
    .describe("Session files"),
  oauth: z
    .object({
      issuer: httpUrl.optional().describe("The login server").meta({ fallback: "OpenAI's" }),
      client_id: z
        .string()
        .min(1)
        .optional()
        .describe("brig's client id at the login server")
        .meta({ fallback: "OpenAI's" }),
    })
    .prefault({})
    .describe("The login of `brig login`"),
  model_providers: z
    .record(z.string(), providerSchema)
    .default({})
    .describe("Model endpoints, each under a name of your choice"),
  mcp_servers: mcpServersSchema.default({}).describe("MCP servers, each under a name of your choice"),
  agents: agentsSchema.prefault({}).describe("Agents that a session starts, and their roles"),
  egress: egressSchema
    .optional()
    .describe(
      "Rules for requests to the hosts of an allow-list, and secrets for them: see docs/request-rules.md",
    ),
  images: imagesSchema.prefault({}).describe("Images of tasks, for `brig batch`"),
  templates: z
    .record(z.string().min(1), z.string().min(1))
    .default({})
    .describe("Images by the names that clients of `brig serve` give as a template of E2B"),
  otel: otelSchema.prefault({}).describe("Spans and measurements for OpenTelemetry: see docs/telemetry.md"),
  prices: pricesSchema
    .default({})
    .describe("What models cost, by name, in place of the prices that brig knows"),
  projects: z
    .record(
      z.string(),
      z.object({
        trust_level: z
          .enum(["trusted", "untrusted"])
          .optional()
          .describe("The configuration files of an untrusted workspace are not read"),
      }),
    )
    .default({})
    .describe("Workspaces, by path"),
  profile: z.string().optional().describe("The profile to use without `-p`"),
  profiles: z
    .record(z.string(), profileSchema)
    .default({})
    .describe("Keys that override those of the file when the profile is chosen"),
});

export type Config = DeepReadonly<z.infer<typeof configSchema>>;
export type McpServerConfig = Config["mcp_servers"][string];

type DeepReadonly<T> = T extends readonly (infer Item)[]
  ? readonly DeepReadonly<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: DeepReadonly<T[Key]> }
    : T;
