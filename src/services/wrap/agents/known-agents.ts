import { basename } from "node:path";
import { invalidUsage } from "../../../errors.js";

/** An environment variable with a key, and the hosts that the key is for. */
export interface AgentKey {
  variable: string;
  /** Entries of an allow-list. */
  hosts: readonly string[];
  /** Whether the hosts are reached over plain HTTP, so that the key is sent without TLS. Default: false. */
  isPlainHttp?: boolean;
  /** The headers that may have the key, in lower case. Default: those that usually have keys. */
  headers?: readonly string[];
  /** If this variable is set on the host, the key is for the host of its URL instead. */
  addressVariable?: string;
}

/** An agent's program that brig knows. */
export interface KnownAgent {
  name: string;
  /** The hosts that the agent needs besides those of its keys, as entries of an allow-list. */
  hosts: readonly string[];
  /** API keys. Each one that is set on the host is passed on as a placeholder, and its hosts are allowed. */
  keys: readonly AgentKey[];
  /** Variables of the host with other settings of the agent's model. They contain no secrets. */
  variables: readonly string[];
  /** A variable of the host that, if set, names the directory used in place of the first directory of `files`. */
  directoryVariable?: string;
  /** A variable of the host that, if set, names the directory that the agent takes for the home directory. */
  homeVariable?: string;
  /** The agent's configuration: files and directories, relative to the home directory. Logins are not among them. */
  files: readonly string[];
  /** Variables that the agent gets in the sandbox. */
  environment: Readonly<Record<string, string>>;
  /** How to switch off the agent's own sandbox, which cannot work inside another one. */
  ownSandbox?: OwnSandbox;
  /** Arguments that continue the agent's last session. */
  continueArguments: readonly string[];
}

interface OwnSandbox {
  arguments: readonly string[];
  /** Matches arguments with which the user has already decided about the sandbox. */
  unless: RegExp;
}

const OPENAI: AgentKey = {
  variable: "OPENAI_API_KEY",
  hosts: ["api.openai.com"],
  addressVariable: "OPENAI_BASE_URL",
};
const ANTHROPIC: AgentKey = {
  variable: "ANTHROPIC_API_KEY",
  hosts: ["api.anthropic.com"],
  addressVariable: "ANTHROPIC_BASE_URL",
};
const GOOGLE_HOSTS = ["generativelanguage.googleapis.com"];
const GEMINI: AgentKey = {
  variable: "GEMINI_API_KEY",
  hosts: GOOGLE_HOSTS,
  addressVariable: "GOOGLE_GEMINI_BASE_URL",
};
/** Gemini on Google Cloud, for which a key is enough. */
const VERTEX: AgentKey = {
  variable: "GOOGLE_API_KEY",
  hosts: ["aiplatform.googleapis.com"],
  addressVariable: "GOOGLE_VERTEX_BASE_URL",
};
const OPENROUTER: AgentKey = { variable: "OPENROUTER_API_KEY", hosts: ["openrouter.ai"] };
const DEEPSEEK: AgentKey = { variable: "DEEPSEEK_API_KEY", hosts: ["api.deepseek.com"] };
const GROQ: AgentKey = { variable: "GROQ_API_KEY", hosts: ["api.groq.com"] };
const MISTRAL: AgentKey = { variable: "MISTRAL_API_KEY", hosts: ["api.mistral.ai"] };

export const knownAgents: readonly KnownAgent[] = [
  {
    name: "codex",
    hosts: [],
    keys: [{ ...OPENAI, variable: "CODEX_API_KEY" }, OPENAI],
    variables: [],
    directoryVariable: "CODEX_HOME",
    files: ["config.toml", "AGENTS.md", "prompts", "rules", "skills", "themes"].map(
      (name) => `.codex/${name}`,
    ),
    environment: {},
    ownSandbox: {
      arguments: ["-c", 'sandbox_mode="danger-full-access"'],
      unless: /^(?:-s|--sandbox(?:=.*)?|--yolo|--dangerously-bypass-approvals-and-sandbox|sandbox_mode=.*)$/,
    },
    continueArguments: ["resume", "--last", "--include-non-interactive"],
  },
  {
    name: "claude",
    hosts: [],
    keys: [
      ANTHROPIC,
      { ...ANTHROPIC, variable: "ANTHROPIC_AUTH_TOKEN" },
      { ...ANTHROPIC, variable: "CLAUDE_CODE_OAUTH_TOKEN" },
    ],
    variables: [
      "ANTHROPIC_MODEL",
      "ANTHROPIC_SMALL_FAST_MODEL",
      ...["OPUS", "SONNET", "HAIKU"].map((model) => `ANTHROPIC_DEFAULT_${model}_MODEL`),
      "CLAUDE_CODE_SUBAGENT_MODEL",
    ],
    directoryVariable: "CLAUDE_CONFIG_DIR",
    files: [
      ...["settings.json", "CLAUDE.md", "rules", "commands", "agents", "skills", "output-styles"],
      "keybindings.json",
    ].map((name) => `.claude/${name}`),
    // The last two keep the agent from reporting usage to, and looking for updates at, hosts other than its model's. Without the
    // first it refuses --dangerously-skip-permissions to uid 0, which has no capabilities in a sandbox.
    environment: { IS_SANDBOX: "1", DISABLE_AUTOUPDATER: "1", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1" },
    continueArguments: ["--continue"],
  },
  {
    name: "opencode",
    // The host has the list of models, which is not essential. Plug-ins come from npm, so a configuration with some needs @npm.
    hosts: ["models.opencode.ai"],
    keys: [
      ...[ANTHROPIC, OPENAI, GEMINI, { ...GEMINI, variable: "GOOGLE_GENERATIVE_AI_API_KEY" }],
      ...[OPENROUTER, DEEPSEEK, GROQ, MISTRAL],
    ],
    variables: [],
    directoryVariable: "XDG_CONFIG_HOME",
    files: [
      ...["config.json", "opencode.json", "opencode.jsonc", "tui.json", "AGENTS.md", "themes"],
      ...["agent", "command", "mode", "plugin", "skill", "tool"].flatMap((name) => [name, `${name}s`]),
    ].map((name) => `.config/opencode/${name}`),
    environment: { OPENCODE_DISABLE_AUTOUPDATE: "true" },
    continueArguments: ["--continue"],
  },
  {
    name: "gemini",
    hosts: [],
    keys: [GEMINI, VERTEX],
    variables: [
      ...["GEMINI_MODEL", "GEMINI_API_KEY_AUTH_MECHANISM", "GOOGLE_GENAI_API_VERSION"],
      ...["GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION"],
    ],
    homeVariable: "GEMINI_CLI_HOME",
    files: [
      ...["settings.json", "trustedFolders.json", "keybindings.json", "GEMINI.md"],
      ...["commands", "skills", "agents", "policies", "extensions"],
    ].map((name) => `.gemini/${name}`),
    // This overrides a sandbox in the agent's settings. The agent reports usage to play.googleapis.com, which is refused: only
    // a setting of the user, privacy.usageStatisticsEnabled, keeps it from trying.
    environment: { GEMINI_SANDBOX: "false" },
    continueArguments: ["--resume", "latest"],
  },
  {
    name: "aider",
    hosts: [],
    keys: [OPENAI, ANTHROPIC, GEMINI, OPENROUTER, DEEPSEEK, GROQ, MISTRAL],
    variables: ["AIDER_MODEL"],
    files: [".aider.conf.yml", ".aider.model.settings.yml", ".aider.model.metadata.json"],
    environment: { AIDER_ANALYTICS: "false", AIDER_CHECK_UPDATE: "false" },
    continueArguments: ["--restore-chat-history"],
  },
];

/** Null for a program that brig does not know. Error: `usage.invalid` for an unknown `--agent`. */
export function findAgent(argv: readonly string[], forced: string | undefined): KnownAgent | null {
  const name = forced ?? basename(argv[0] ?? "");
  const agent = knownAgents.find((one) => one.name === name) ?? null;
  if (agent !== null || forced === undefined) return agent;
  throw invalidUsage(
    `${JSON.stringify(forced)} is not an agent that brig knows`,
    `use one of ${knownAgents.map((one) => one.name).join(", ")}; or leave out --agent, and say what it needs with --network and --secret`,
  );
}

/** The command with the arguments that switch off the agent's own sandbox, unless the command says something about it. */
export function withoutOwnSandbox(argv: readonly string[], { ownSandbox }: KnownAgent): string[] {
  const [program = "", ...rest] = argv;
  if (ownSandbox === undefined || rest.some((one) => ownSandbox.unless.test(one))) return [...argv];
  return [program, ...ownSandbox.arguments, ...rest];
}
