import { basename } from "node:path";
import { BrigError } from "../../../errors.js";

/** An environment variable with a key, and the hosts that the key is for. */
export interface AgentKey {
  variable: string;
  /** Entries of an allow-list. */
  hosts: readonly string[];
  /** Whether the address of the hosts is one of plain HTTP, so that the key is sent without TLS. Default: false. */
  isPlainHttp?: boolean;
  /** If this variable of the host is set, the key is for the host of its URL instead. */
  addressVariable?: string;
}

/** What brig knows about an agent's program. */
export interface KnownAgent {
  name: string;
  /** The hosts that it needs besides those of its keys, as entries of an allow-list. */
  hosts: readonly string[];
  /** Of those that are set on the host, each is passed on as a placeholder, and its hosts are allowed. */
  keys: readonly AgentKey[];
  /** Variables of the host with other settings of its model. They hold no secrets. */
  variables: readonly string[];
  /** Where its configuration is if this variable of the host is set, in place of the first directory of `files`. */
  directoryVariable?: string;
  /** What it takes for the home directory if this variable of the host is set. */
  homeVariable?: string;
  /** Its configuration: files and directories, relative to the home directory. Logins are not among them. */
  files: readonly string[];
  /** Variables that it gets inside. */
  environment: Readonly<Record<string, string>>;
  /** How its own sandbox, which cannot work inside another, is switched off. */
  ownSandbox?: OwnSandbox;
  /** Arguments that continue its last session. */
  continueArguments: readonly string[];
}

interface OwnSandbox {
  arguments: readonly string[];
  /** One of these in the command: the user has decided about the sandbox. */
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
/** Gemini by Google Cloud, for which a key is enough. */
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
    // With the last two it neither reports usage to, nor looks for updates at, hosts that are not its model's. Without the
    // first it refuses --dangerously-skip-permissions to uid 0, which has no capabilities in a sandbox.
    environment: { IS_SANDBOX: "1", DISABLE_AUTOUPDATER: "1", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1" },
    continueArguments: ["--continue"],
  },
  {
    name: "opencode",
    // The list of models; it does without. From npm it installs plug-ins, so a configuration with some needs @npm.
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
    // This comes before a sandbox of its own in its settings. It reports usage to play.googleapis.com, which is refused: only
    // a setting of the user, privacy.usageStatisticsEnabled, keeps it from that.
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
  throw new BrigError(`${JSON.stringify(forced)} is not an agent that brig knows`, {
    code: "usage.invalid",
    hint: `use one of ${knownAgents.map((one) => one.name).join(", ")}; or leave out --agent, and say what it needs with --network and --secret`,
  });
}

/** The command with what switches off the agent's own sandbox, unless the command says something about it. */
export function withoutOwnSandbox(argv: readonly string[], { ownSandbox }: KnownAgent): string[] {
  const [program = "", ...rest] = argv;
  if (ownSandbox === undefined || rest.some((one) => ownSandbox.unless.test(one))) return [...argv];
  return [program, ...ownSandbox.arguments, ...rest];
}
