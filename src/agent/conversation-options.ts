import type { BrigError } from "../errors.js";
import type { ResponseItem } from "../model/items.js";
import type { ModelClient, TokenUsage } from "../model/model-client.js";
import type { TruncationPolicy } from "../output/truncation.js";
import type { SessionAuthority } from "../policy/session-authority.js";
import type { SentContext, SessionSetting } from "../session/setting.js";
import type { SessionLog } from "../session/write/session-file.js";
import type { ToolRegistry, ToolRegistryOptions } from "../tools/registry.js";
import type { AgentSandbox, SandboxSource } from "./agent-sandbox.js";
import type { Approver } from "./approvals/approvals.js";
import type { CompactionOptions, CompactionOutcome } from "./compaction/compactor.js";
import type { ContextOptions } from "./context/context-messages.js";
import type { AgentListener } from "./turn/events.js";

/** What a conversation is made of. Only the model, the sandbox and the setting have to be named. */
export interface ConversationOptions {
  model: ModelClient;
  /** Starts at once. A function's sandbox is closed with the conversation; any other is the caller's. */
  sandbox: SandboxSource;
  /** Where and how the session runs, as the model is told. */
  setting: SessionSetting;
  /** Default: brig's registry, working in the setting's directory. Closed with the sandbox. */
  tools?: ((sandbox: Promise<AgentSandbox>) => ToolRegistry) | undefined;
  /** How much of an output the model is given. Default: what is known of the model. */
  truncation?: TruncationPolicy | undefined;
  /** For brig's registry. */
  toolOptions?: Pick<ToolRegistryOptions, "allowsLoginShell" | "gates" | "maxPollMs" | "user"> | undefined;
  /** Who answers what the setting's approval policy asks. Default: nobody, so that it is refused. */
  approver?: Approver | undefined;
  /** Opens the second container, with full access, for what may leave the first; closed with the conversation. Default: nothing may. */
  escalatedSandbox?: (() => Promise<AgentSandbox>) | undefined;
  /** Default: brig's own. */
  instructions?: string | undefined;
  /** What the model is told of where and how it works. Default: everything, and no AGENTS.md. */
  context?: ContextOptions | undefined;
  /** When the conversation is summed up to make room. Default: what is known of the model. */
  compaction?: CompactionOptions | undefined;
  /** A turn that takes longer is stopped, and fails with `turn.timed-out`. Default: 24 hours. */
  turnTimeoutMs?: number | undefined;
  /** A JSON Schema that the final message of each turn has to follow. */
  outputSchema?: Readonly<Record<string, unknown>> | undefined;
  onEvent?: AgentListener | undefined;
  /** Default: nothing is kept. Closed with the conversation. */
  session?: SessionLog | undefined;
  /** Default: a new one. */
  threadId?: string | undefined;
  /** What was said before, for a session that goes on; its log holds that already. Default: nothing. */
  initialItems?: readonly ResponseItem[] | undefined;
  /**
   * What `initialItems` last told the model about where and how it works. Default: null, so that the first turn
   * tells it everything.
   */
  sentContext?: SentContext | null | undefined;
  /** @deprecated The old name of `sentContext`. */
  toldContext?: SentContext | null | undefined;
  /** What a session that goes on has had so far. Default: nothing. */
  earlierUse?: { usage: TokenUsage; turns: number } | undefined;
  /** Whether the record ends with what the working directory holds, where that is small enough. Default: false. */
  recordsTree?: boolean | undefined;
  /** What the session that starts this one may do: one that may do more is refused with `policy.invalid`. Default: no such session. */
  parent?: SessionAuthority | undefined;
  /** Default: the clock. */
  now?: (() => Date) | undefined;
  /** From 0 up to but not including 1, for the delays between retries. Default: Math.random. */
  random?: (() => number) | undefined;
}

/** What the user asks in one turn. */
export interface TurnInput {
  prompt: string;
  /** Pictures, as data URLs. */
  images?: readonly string[] | undefined;
  /** Aborting ends the turn: running calls are ended, and each has its output. */
  signal?: AbortSignal | undefined;
  /** Whether commands that still run are ended with this turn. Default: false, they go on. */
  isLast?: boolean | undefined;
}

/** How one turn went. */
export interface TurnResult {
  status: "completed" | "failed" | "interrupted";
  /** The last text of the assistant in this turn, null where it said nothing. */
  lastMessage: string | null;
  /** Of all requests of the conversation together. */
  usage: TokenUsage;
  /** In this turn. */
  toolCalls: number;
  /** From the start of each call of this turn to its output, in the order of the calls. */
  callLatenciesMs: number[];
  /** Why it failed. */
  error?: BrigError;
}

/** How a compaction ended. */
export type CompactionResult =
  | CompactionOutcome
  /** The conversation is as it was. */
  | { kind: "failed"; error: BrigError }
  | { kind: "interrupted" };

/** What the next turns run with. */
export interface SettingChange {
  setting: SessionSetting;
  /** Takes the place of the sandbox so far. Default: that one stays. */
  sandbox?: SandboxSource | undefined;
}

/** A model, a sandbox, and all that was said so far. */
export interface Conversation {
  readonly threadId: string;
  /** Null where nothing is kept. */
  readonly sessionFile: string | null;
  readonly setting: SessionSetting;
  /** Rejects where it could not start. */
  readonly sandbox: Promise<AgentSandbox>;
  /** How long the sandbox took to start, in milliseconds; null while it is not ready. */
  readonly sandboxStartMs: number | null;
  readonly tools: ToolRegistry;
  /** All that it may do; for the `parent` of a session that it starts. */
  readonly authority: SessionAuthority;
  /** Of all requests so far. */
  readonly usage: TokenUsage;
  /**
   * Asks the model, runs its tool calls, and asks again with their outputs, until it calls none. What goes wrong with the model, the
   * sandbox or the engine is in the result; only a fault of brig's own is thrown. One turn at a time: a second one is a TypeError.
   */
  runTurn(input: TurnInput): Promise<TurnResult>;
  /** How much of what the model can read is used, partly by estimate; `windowTokens` is null where nobody knows. */
  readonly room: { usedTokens: number; windowTokens: number | null };
  /**
   * Has the model sum up the conversation, and goes on from the summary and what the user said. What goes wrong is in the result. During a
   * turn it is a TypeError.
   */
  compact(options?: { signal?: AbortSignal | undefined }): Promise<CompactionResult>;
  /**
   * For the turns to come; during one it is a TypeError. The sandbox so far is closed if it was the conversation's, with all that still
   * runs in it, and what was approved for the session is asked about anew. More than the `parent` may do is `policy.invalid`.
   */
  changeSetting(change: SettingChange): Promise<void>;
  /** Ends what still runs, and closes the session file, and the sandbox if it is the conversation's. */
  close(): Promise<void>;
}
