import type { BrigError } from "../../errors.js";
import type { Environment } from "../../lib/env.js";
import type {
  ApprovalPolicy,
  OnCopied,
  Sandbox,
  SandboxMode,
  UnresolvedSettings,
} from "../../sandbox/index.js";
import type { AskedUser } from "../../tools/index.js";
import type { AgentSandbox } from "../agent-sandbox.js";
import type { Approver } from "../approvals/approvals.js";
import type { Config } from "../config/config-schema.js";
import type { McpServerInput } from "../config/mcp-servers-schema.js";
import type { ConfigChoice } from "../config/settings/load-config.js";
import type { SessionSetting } from "../session/setting.js";
import type { EarlierSession } from "./earlier-session.js";

/** What whoever starts an agent decides. The user's configuration decides the rest, so nearly all of it may be left out. */
export interface AgentSettings extends CallerDefaults, Pick<ConfigChoice, "profile" | "overrides"> {
  /** Overrides the keys of the configuration about the sandbox. */
  sandbox: Omit<UnresolvedSettings, "environment" | "writableRoots" | "configuredEgress">;
  /** Where commands start in a sandbox without a workspace. Default: where its image says. */
  directory?: string | undefined;
  model?: string | undefined;
  approvalPolicy?: ApprovalPolicy | undefined;
  /** The absolute path of a file with base instructions that replace brig's own. */
  instructionsFile?: string | undefined;
  /** The JSON Schema that the final message must follow. */
  outputSchema?: Record<string, unknown> | undefined;
  /** The absolute path of a script whose replies are played instead of calling a model. */
  script?: string | undefined;
  /** Whether nothing of the session is saved. Default: false. */
  isEphemeral?: boolean | undefined;
  /** Whether the session's file gets the final state of the workspace. Default: true. */
  recordsTree?: boolean | undefined;
  /** A sandbox that is open already, and stays open when the session ends. Default: the session opens its own. */
  within?: OpenPlace | undefined;
}

/** A sandbox that is open already, in which a session works. `sandbox` of the settings has to say the same of it. */
interface OpenPlace {
  /** What the user calls it. */
  name: string;
  /** Whether its files are no files of the host, so that another sandbox cannot see them. */
  hasOwnFiles: boolean;
  setting: Pick<SessionSetting, "cwd" | "sandboxMode" | "network" | "writableRoots">;
  /** Connects to it. Closing what it returns ends nothing. */
  open(): Promise<AgentSandbox>;
}

/** Defaults of a program that has its own command line. Settings and the configuration override them. */
export interface CallerDefaults {
  /** Used if neither a mode nor a policy is chosen. Default: workspace-write. */
  usualMode?: SandboxMode | undefined;
  /** The client name that is sent to the model's endpoint. Default: brig. */
  originator?: string | undefined;
  /** Whether to skip the config.toml of $BRIG_HOME and $CODEX_HOME. */
  ignoresUserFile?: boolean | undefined;
  /** Whether further writable directories under a policy that takes none are a warning. Default: an error. */
  toleratesAddDirs?: boolean | undefined;
}

/** A new session, or one to continue. */
export interface SessionSettings extends AgentSettings {
  /** Whether a person may go on after a turn. */
  hasManyTurns: boolean;
  /** Base instructions that replace all others. */
  instructions?: string | undefined;
  /** MCP servers besides those of the configuration, with the keys of config.toml. */
  mcpServers?: Readonly<Record<string, McpServerInput>> | undefined;
  /** Default: a new session. */
  earlier?: EarlierSession | undefined;
}

/** What a session needs of the program that it runs in. */
export interface SessionHost {
  readonly environment: Environment;
  /** The absolute path that relative paths in the settings' `overrides` start at. */
  readonly cwd: string;
  readonly signal: AbortSignal;
  /** Tells the user a sentence, or the message and the hint of a warning. Both may hold text of others, so it makes them harmless. */
  warn(warning: string | BrigError): Promise<void>;
  /** Called with the configuration of a session before anything of it is opened. Default: nothing. */
  onConfig?: ((config: Config) => Promise<void>) | undefined;
  /** Called with each sandbox of the session before it is used. If it fails, the sandbox is closed. Default: nothing. */
  onSandbox?: ((sandbox: Sandbox, session: { threadId: string }) => Promise<void>) | undefined;
  /** Called with how much is copied when a session's sandbox gets the kept state of its workspace, and when its changes are kept. Default: nobody. */
  onCopied?: OnCopied | undefined;
  /** Answers requests for approval. Default: nobody. */
  approver?: Approver | undefined;
  /** Answers the model's questions, and those of MCP servers. Default: nobody. */
  user?: AskedUser | undefined;
}
