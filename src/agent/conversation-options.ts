import type { BrigError } from "../errors.js";
import type { RestorePointOptions, SessionAuthority, TruncationPolicy } from "../sandbox/index.js";
import type { McpServers, ToolRegistry, ToolRegistryOptions } from "../tools/index.js";
import type { AgentSandbox, SandboxSource } from "./agent-sandbox.js";
import type { AgentsOptions } from "./agents/agents-options.js";
import type { Approver } from "./approvals/approvals.js";
import type { CompactionOptions, CompactionOutcome } from "./compaction/compactor.js";
import type { ContextOptions } from "./context/context-messages.js";
import type { ResponseItem } from "./model/items.js";
import type { ModelClient, TokenUsage } from "./model/model-client.js";
import type { UndoneChanges } from "./session/restore-point.js";
import type { SentContext, SessionSetting } from "./session/setting.js";
import type { SessionLog } from "./session/write/session-file.js";
import type { McpSession } from "./session-servers.js";
import type { SessionSetup } from "./setup/setup-options.js";
import type { AgentListener } from "./turn/events.js";

/** Options for opening a conversation. Only the model, the sandbox and the setting are required. */
export interface ConversationOptions {
  model: ModelClient;
  /** A function is called at once, and its sandbox is closed by the conversation, any other by the caller. */
  sandbox: SandboxSource;
  /**
   * Runs in the sandbox of a new session, before its first call; only where `sandbox` is a function. If it fails, the turn
   * fails, and the next turn tries it again. Default: nothing.
   */
  setup?: SessionSetup | undefined;
  /** Information for the model about where and how the session runs. */
  setting: SessionSetting;
  /**
   * Opens the tools; they are closed with the sandbox. Default: brig's registry, in the setting's directory.
   */
  tools?: ((sandbox: Promise<AgentSandbox>) => ToolRegistry) | undefined;
  /** Limit for the part of each output that is sent to the model. Default: what is usual for the model. */
  truncation?: TruncationPolicy | undefined;
  /** Options for brig's registry. */
  toolOptions?:
    | Pick<ToolRegistryOptions, "allowsLoginShell" | "elicit" | "gates" | "maxPollMs" | "user">
    | undefined;
  /**
   * Opens the MCP servers whose tools the model gets besides brig's own. The conversation closes them with
   * its sandbox, and calls this again for each new sandbox. Default: no servers.
   */
  mcpServers?: ((session: McpSession) => McpServers) | undefined;
  /**
   * Answers the questions of the setting's approval policy. Default: none; what would be asked is refused.
   */
  approver?: Approver | undefined;
  /**
   * Opens a second container, with full access, for commands that are approved to leave the sandbox. It is
   * closed with the conversation. Default: none; nothing may leave the sandbox.
   */
  escalatedSandbox?: (() => Promise<AgentSandbox>) | undefined;
  /**
   * Lets the session start other agents, within these limits. They are closed with the session. Default: it
   * cannot start any.
   */
  agents?: AgentsOptions | undefined;
  /**
   * Keeps a host that the user allows for later sessions, too, as it can stand in an allow-list. Default: the user is not
   * offered that.
   */
  rememberHost?: ((host: string) => Promise<void>) | undefined;
  /** Called once when the conversation is closed, after its sandboxes. */
  onClose?: (() => Promise<void>) | undefined;
  /** The base instructions. Default: brig's own. */
  instructions?: string | undefined;
  /** Selects the context messages that are sent. Default: permissions and environment, without AGENTS.md files. */
  context?: ContextOptions | undefined;
  /** Settings for compacting the conversation. Default: what is usual for the model. */
  compaction?: CompactionOptions | undefined;
  /** A turn that takes longer is stopped and fails with `turn.timed-out`. Default: 24 hours. */
  turnTimeoutMs?: number | undefined;
  /** A JSON Schema for the final message of each turn. */
  outputSchema?: Readonly<Record<string, unknown>> | undefined;
  onEvent?: AgentListener | undefined;
  /**
   * Whether the spans for an OpenTelemetry provider that the program has registered contain prompts, answers, arguments and
   * outputs. Default: false, but in the program `brig` as its settings say.
   */
  capturesContent?: boolean | undefined;
  /** File that records the session; closed with the conversation. Default: none. */
  session?: SessionLog | undefined;
  /** Default: a new UUID. */
  threadId?: string | undefined;
  /** The conversation so far, if a session is resumed; `session` already contains it. Default: none. */
  initialItems?: readonly ResponseItem[] | undefined;
  /** The context that `initialItems` contain. Default: null; the first turn sends all of it. */
  sentContext?: SentContext | null | undefined;
  /**
   * Why the workspace is not as `initialItems` say, in a sentence for the model, which reads it before the first
   * prompt. Default: it is.
   */
  workspaceLoss?: string | undefined;
  /** Tokens and turns that a resumed session has used so far. Default: nothing. */
  earlierUse?: { usage: TokenUsage; turns: number } | undefined;
  /** The branch that is checked out in the workspace, for the session file. Default: it is not recorded. */
  branch?: string | undefined;
  /**
   * Whether a description of the working directory, if it is small enough, ends the record. Default: false.
   */
  recordsTree?: boolean | undefined;
  /** Rights of the session that starts this one; asking for more is `policy.invalid`. Default: none. */
  parent?: SessionAuthority | undefined;
  /** Default: the system clock. */
  now?: (() => Date) | undefined;
  /**
   * Returns a number from 0 up to but not including 1, for the delays between retries. Default: Math.random.
   */
  random?: (() => number) | undefined;
}

/** The user's request for one turn. */
export interface TurnInput {
  prompt: string;
  /** Data URLs. */
  images?: readonly string[] | undefined;
  /** Aborting ends the turn and its running calls; each call gets an output all the same. */
  signal?: AbortSignal | undefined;
  /** Whether commands that are still running end with this turn. Default: false. */
  isLast?: boolean | undefined;
}

/** The result of one turn. */
export interface TurnResult {
  status: "completed" | "failed" | "interrupted";
  /** The assistant's last message in this turn; null if there was none. */
  lastMessage: string | null;
  /** The total of all requests of the conversation. */
  usage: TokenUsage;
  /** The number of tool calls in this turn. */
  toolCalls: number;
  /** The time from the start of each call of this turn to its output, in the order of the calls. */
  callLatenciesMs: number[];
  /** Why the turn failed. */
  error?: BrigError;
}

/** The result of a compaction. */
export type CompactionResult =
  | CompactionOutcome
  /** The conversation is unchanged. */
  | { kind: "failed"; error: BrigError }
  | { kind: "interrupted" };

/** The setting and sandbox for the following turns. */
export interface SettingChange {
  setting: SessionSetting;
  /** Replaces the current sandbox. Default: the current one stays. */
  sandbox?: SandboxSource | undefined;
}

/** A message that was not part of a turn. */
export interface AddedMessage {
  role: "user" | "assistant";
  text: string;
}

/** The model for the following turns. */
export interface ModelChange {
  model: ModelClient;
  /** Limit for the part of each output that is sent to it. Default: what is usual for the model. */
  truncation?: TruncationPolicy | undefined;
}

/** A model, a sandbox, and everything that has been said so far. */
export interface Conversation {
  readonly threadId: string;
  /** Null if the session is not recorded. */
  readonly sessionFile: string | null;
  readonly setting: SessionSetting;
  /** The model of the next turn. */
  readonly model: ModelClient;
  /** Rejects if the sandbox could not start. */
  readonly sandbox: Promise<AgentSandbox>;
  /** Time that the sandbox took to start; null until it has started. */
  readonly sandboxStartMs: number | null;
  readonly tools: ToolRegistry;
  /** The MCP servers of the sandbox; null without any. */
  readonly mcpServers: McpServers | null;
  /** Rights of the session, to pass as `parent` to a session that it starts. */
  readonly authority: SessionAuthority;
  /** The total of all requests so far. */
  readonly usage: TokenUsage;
  /** Tokens that the agents of the session have used, which are not part of `usage`. */
  readonly agentUsage: TokenUsage;
  /**
   * Asks the model, runs its tool calls, and asks again with their outputs until it calls no tool. A failure
   * of the model, the sandbox or the engine is in the result; only a fault in brig is thrown. A second turn
   * at the same time is a TypeError.
   */
  runTurn(input: TurnInput): Promise<TurnResult>;
  /** Used part of the context window, partly estimated; `windowTokens` is null if it is unknown. */
  readonly room: { usedTokens: number; windowTokens: number | null };
  /**
   * Has the model summarise the conversation, which then continues from the summary and the user's messages.
   * A failure is in the result. During a turn this is a TypeError.
   */
  compact(options?: { signal?: AbortSignal | undefined }): Promise<CompactionResult>;
  /**
   * Runs a script as the person, in the shell that the model's scripts run in, and with no question. Its events are
   * those of a call named `user_shell_command`. The model reads the script and its output with the next turn.
   * Resolves to the exit code, to null if the signal stopped the command. During a turn this is a TypeError.
   */
  runUserCommand(script: string, options?: { signal?: AbortSignal | undefined }): Promise<number | null>;
  /**
   * Takes back what the last call that changed files did to the copy-on-write workspace; again, what the one
   * before it did. The model is told so. Null if there is nothing to undo. Errors: `workspace.invalid` for a
   * workspace of another kind, those of the sandbox. During a turn this is a TypeError.
   */
  undo(options?: RestorePointOptions): Promise<UndoneChanges | null>;
  /**
   * Changes the setting for the following turns; during a turn this is a TypeError. A new sandbox replaces
   * the current one, which is closed, with everything still running in it, if the conversation opened it.
   * Approvals for the session are asked for again. A setting that allows more than the `parent` may do is
   * `policy.invalid`.
   */
  changeSetting(change: SettingChange): Promise<void>;
  /**
   * Goes on with another model, which reads the conversation so far; context window and tools become those of that model, and
   * commands that run go on. The session file records it. During a turn this is a TypeError.
   */
  changeModel(change: ModelChange): void;
  /**
   * Adds messages to the conversation, which the model reads with the next prompt, and `usage` to what was used. During a
   * turn this is a TypeError.
   */
  addMessages(messages: readonly AddedMessage[], options?: { usage?: TokenUsage | undefined }): void;
  /**
   * Closes the sandbox and ends everything that still runs in it. The next turn opens another one. If the
   * conversation was given an open sandbox, nothing happens. Throws a TypeError during a turn.
   */
  releaseSandbox(): Promise<void>;
  /** Stops what the agents that the session has started are doing. They stay open. */
  interruptAgents(): Promise<void>;
  /**
   * Ends what is still running, and closes the session file, and the sandbox if the conversation opened it.
   */
  close(): Promise<void>;
}
