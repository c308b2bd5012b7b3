import { z } from "zod";
import { APPROVAL_POLICIES, granularSchema } from "../policy/approval-policy.js";
import { DEFAULT_MODE, SANDBOX_MODES } from "../policy/modes.js";
import { parseNetwork } from "../policy/network.js";
import { providerSchema } from "./provider-schema.js";
import { httpUrl, milliseconds, unused } from "./setting-kinds.js";
import { toolsSchema, webSearchMode } from "./tools-schema.js";

export const DEFAULT_MODEL = "gpt-5.2-codex";

/** Where the default is decided elsewhere, `fallback` says it in words; a secret's value is never shown. */
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
    .describe("Further writable directories; a relative one is relative to the file's own directory"),
  network_access: z.boolean().default(false).describe("Whether commands may use the network"),
  exclude_slash_tmp: z
    .boolean()
    .default(false)
    .describe("No effect: a sandbox has a `/tmp` of its own, and never the machine's"),
  exclude_tmpdir_env_var: z.boolean().default(false).describe("No effect, for the same reason"),
});

const shellEnvironmentSchema = z.object({
  inherit: z
    .enum(["all", "core", "none"])
    .default("none")
    .describe("No variable of this machine ever enters a sandbox; `all` and `core` are warned about"),
  ignore_default_excludes: z.boolean().default(true).describe("No effect, since nothing is inherited"),
  exclude: z.array(z.string()).default([]).describe("No effect, since nothing is inherited"),
  set: variables.default({}).describe("Variables of every command"),
  include_only: z
    .array(z.string())
    .default([])
    .describe("If there are any, of `set` only the names that match one of these patterns (`*`, `?`)"),
  experimental_use_profile: unused,
});

const networkSetting = z.string().check(({ value, issues }) => {
  const network = parseNetwork(value);
  if (network.kind === "refused") issues.push({ code: "custom", message: network.reason, input: value });
});

/** What may stand at the top of the file and in a profile. */
const shared = {
  model: z.string().min(1).optional().describe("The model to ask").meta({ fallback: DEFAULT_MODEL }),
  model_provider: z
    .string()
    .min(1)
    .optional()
    .describe("Who is asked: `openai`, `ollama`, `lmstudio`, or one of `model_providers`")
    .meta({ fallback: "openai" }),
  model_context_window: tokens.optional().describe("In tokens").meta({ fallback: "by model" }),
  model_auto_compact_token_limit: tokens
    .optional()
    .describe("From this many tokens on, older turns are summarised")
    .meta({ fallback: "90 % of the window" }),
  model_reasoning_effort: z
    .string()
    .min(1)
    .optional()
    .describe("For example `low`, `medium`, `high`")
    .meta({ fallback: "the provider's" }),
  model_reasoning_summary: z
    .enum(["auto", "concise", "detailed", "none"])
    .optional()
    .describe("How reasoning is summed up")
    .meta({ fallback: "the provider's" }),
  model_verbosity: z
    .enum(["low", "medium", "high"])
    .optional()
    .describe("How long answers are")
    .meta({ fallback: "the provider's" }),
  model_supports_reasoning_summaries: z
    .boolean()
    .optional()
    .describe("Whether it can be asked to reason")
    .meta({ fallback: "by model" }),
  model_instructions_file: z
    .string()
    .min(1)
    .optional()
    .describe("A file that replaces brig's own instructions; relative to the directory of config.toml"),
  instructions: z.string().optional().describe("Instructions of your own, besides AGENTS.md"),
  developer_instructions: z.string().optional().describe("A developer message before the first prompt"),
  compact_prompt: z
    .string()
    .optional()
    .describe("Replaces the prompt that asks for a summary")
    .meta({ fallback: "brig's own" }),
  service_tier: z.string().optional().describe("Passed to the provider"),
  openai_base_url: httpUrl
    .optional()
    .describe("Where the provider `openai` is")
    .meta({ fallback: "https://api.openai.com/v1" }),
  chatgpt_base_url: httpUrl
    .optional()
    .describe("Where requests go after a ChatGPT login")
    .meta({ fallback: "OpenAI's" }),

  approval_policy: z
    .union([z.enum(APPROVAL_POLICIES), granularSchema])
    .optional()
    .describe("When a person is asked; with `granular`, what is not true is refused instead of asked")
    .meta({ fallback: "on-request; `brig run`: never" }),
  sandbox_mode: z
    .enum(SANDBOX_MODES)
    .optional()
    .describe("What commands may do")
    .meta({ fallback: DEFAULT_MODE }),
  sandbox_workspace_write: workspaceWriteSchema.prefault({}).describe("Of the mode workspace-write"),
  policy: z
    .string()
    .min(1)
    .optional()
    .describe("A policy file in place of `sandbox_mode`; relative to the directory of config.toml"),
  network: networkSetting
    .optional()
    .describe("`none`, `full` or `allowlist:HOST,…`, where the policy permits it")
    .meta({ fallback: "the policy's" }),
  experimental_supported_tools: z
    .array(z.string().min(1))
    .optional()
    .describe(
      "Of `read_file`, `list_dir` and `grep_files` only those named are on, where `tools` does not say otherwise",
    )
    .meta({ fallback: "all three" }),
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
    .describe("A container ends this long after brig went away"),

  shell_environment_policy: shellEnvironmentSchema.prefault({}).describe("The environment of commands"),
  allow_login_shell: z.boolean().default(true).describe("Whether a model may ask for a login shell"),
  background_terminal_max_timeout: milliseconds
    .default(300_000)
    .describe("Milliseconds that one look at a running command may wait"),
  turn_timeout_ms: milliseconds
    .default(86_400_000)
    .describe("The longest that one turn may take, with all its requests and calls"),
  tool_output_token_limit: tokens
    .optional()
    .describe("Tokens of a tool's output that reach the model")
    .meta({ fallback: "by model" }),
  tools: toolsSchema.prefault({}).describe("Which tools a model is told of"),
  web_search: webSearchMode.optional().describe("The provider's own search").meta({ fallback: "disabled" }),

  project_doc_max_bytes: z
    .int()
    .min(0)
    .default(32_768)
    .describe("Bytes of AGENTS.md files that are passed on; 0 for none"),
  project_doc_fallback_filenames: z
    .array(fileName)
    .default([])
    .describe("Read in a directory that has no AGENTS.md"),
  project_root_markers: z.array(fileName).default([".git"]).describe("What the top of a project holds"),
  include_environment_context: z
    .boolean()
    .default(true)
    .describe("Whether the model is told of directory, date and network"),
  include_permissions_instructions: z
    .boolean()
    .default(true)
    .describe("Whether the model is told what it may do"),
};

const profileSchema = z.object(shared);

/** `config.toml`, with Codex's keys. An unknown key is left out with a warning, since it may be a newer one. */
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
      issuer: httpUrl.optional().describe("Who logs people in").meta({ fallback: "OpenAI's" }),
      client_id: z
        .string()
        .min(1)
        .optional()
        .describe("What brig is called there")
        .meta({ fallback: "OpenAI's" }),
    })
    .prefault({})
    .describe("The login of `brig login`"),
  model_providers: z
    .record(z.string(), providerSchema)
    .default({})
    .describe("Endpoints, under names of yours"),
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
    .describe("Workspaces, under their paths"),
  profile: z.string().optional().describe("The profile that is used where `-p` names none"),
  profiles: z
    .record(z.string(), profileSchema)
    .default({})
    .describe("Keys that go above those of the file where the profile is chosen"),
});

export type Config = DeepReadonly<z.infer<typeof configSchema>>;
export type ProviderConfig = DeepReadonly<z.infer<typeof providerSchema>>;

type DeepReadonly<T> = T extends readonly (infer Item)[]
  ? readonly DeepReadonly<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: DeepReadonly<T[Key]> }
    : T;
