import type { BrigError } from "../../errors.js";
import type { EgressEntry, OutputPart } from "../../sandbox/index.js";
import type { AgentState, ToolActivity } from "../../tools/index.js";
import type { AgentPlacement } from "../agents/agent-label.js";
import type { TokenUsage } from "../model/model-client.js";
import type { RequestEnd } from "../model/observed-model.js";
import type { SessionReceipt } from "../session/receipts.js";
import type { PointChange } from "../session/restore-point.js";
import type { WebSearch } from "./web-search-event.js";

/**
 * Everything that happens in a session, in this order:
 *
 * 1. `session-started` once, then `turn-started` for each turn.
 * 2. For each response of the model: `request-started`, then `text-delta`, `reasoning`, `message` and its calls, and
 *    `request-ended` when the response has arrived, whose calls may still run. A call is
 *    `call-started`, then perhaps `approval-requested` and `approval-answered`, then for a command
 *    `command-declined` or `command-started`, `command-output` and `command-ended`, for a patch
 *    `patch-started` and `patch-ended`, for a tool of an MCP server `mcp-call-started`, `mcp-call-progress`,
 *    `mcp-question-asked`, `mcp-question-answered` and `mcp-call-ended`, for a tool about agents
 *    `agent-call-started` and `agent-call-ended`, for a plan `plan-updated`, and at last
 *    `call-ended`. A command that outlives its call has its `command-ended` later. In a copy-on-write workspace
 *    `restore-point-created` follows a call that has changed something, before the next response's first item.
 * 3. Exactly one of `turn-completed`, `turn-failed` and `turn-interrupted`.
 *
 * A command of the person comes between turns, as a call named `user_shell_command`.
 * `setup-started`, `setup-output` and `setup-ended` come before the first `sandbox-ready` of a session with a set-up.
 * `sandbox-ready` comes when a sandbox has started, `mcp-servers-starting` before a turn's first response.
 * `compaction-started` and `compacted` come before a turn's first response, between two responses, or between
 * turns; `egress`, `web-searched`, `reconnecting` and `warning` at any time. For each agent that is
 * started, `agent-started` comes first, then `agent-state` and `agent-event`, also between turns, until its state
 * is `closed`.
 */
export type AgentEvent =
  | { kind: "session-started"; threadId: string; sessionFile: string | null }
  | { kind: "turn-started"; prompt: string }
  | { kind: "setup-started"; argv: readonly string[]; network: string }
  | { kind: "setup-output"; chunk: Uint8Array }
  /** `output` is its beginning and its end. All are null if it was interrupted, or could not run. */
  | { kind: "setup-ended"; exitCode: number | null; durationMs: number | null; output: string | null }
  /** `readyAt`: in milliseconds since 1970. The event may come later, since a sandbox may start before the first turn. */
  | { kind: "sandbox-ready"; sandboxId: string; startMs: number; readyAt: number }
  /** The model is asked for a response, or for the summary of a compaction. */
  | { kind: "request-started"; provider: string; model: string }
  | ({ kind: "request-ended" } & RequestEnd)
  | { kind: "text-delta"; text: string }
  | { kind: "reasoning"; text: string }
  | { kind: "message"; text: string }
  | { kind: "call-started"; callId: string; name: string; input: string }
  /** What the tool reports during the call, and after it while its command still runs. */
  | ({ callId: string } & CallActivity)
  | {
      kind: "call-ended";
      callId: string;
      name: string;
      content: string;
      /** What the model gets instead of `content`, if there are images. */
      parts?: readonly OutputPart[];
      success: boolean;
      durationMs: number;
    }
  /** The state of the workspace after a call was kept. `changes` are the first of `count` paths. */
  | {
      kind: "restore-point-created";
      callId: string;
      snapshot: string;
      point: number;
      count: number;
      changes: readonly PointChange[];
    }
  /** A program in a sandbox with an allow-list tried to reach something, perhaps several times. */
  | { kind: "egress"; entry: EgressEntry }
  /** Another agent was started; `task` is null for one that was resumed. */
  | { kind: "agent-started"; agent: AgentPlacement; task: string | null }
  | { kind: "agent-state"; agentId: string; state: AgentState }
  /** An event in the session of an agent that this one has started, or that such an agent has started. */
  | { kind: "agent-event"; agentId: string; event: AgentEvent }
  /**
   * The turn pauses until these MCP servers have started, because the next request to the model lists their
   * tools.
   */
  | { kind: "mcp-servers-starting"; servers: readonly string[] }
  /** The model's provider searched the web. */
  | ({ kind: "web-searched" } & WebSearch)
  /** A response broke off; it is requested again after the delay. */
  | { kind: "reconnecting"; attempt: number; maxAttempts: number; delayMs: number; reason: string }
  /** The model is asked for a summary. If no `compacted` follows, nothing has changed. */
  | { kind: "compaction-started"; reason: CompactionReason }
  /** A summary replaced the conversation. Sizes are partly estimated. */
  | { kind: "compacted"; reason: CompactionReason; tokensBefore: number; tokensAfter: number }
  /** Comes last, after the sandboxes were closed, if they left something to report. */
  | { kind: "receipt"; receipt: SessionReceipt }
  | { kind: "warning"; message: string }
  | { kind: "turn-completed"; usage: TokenUsage }
  | { kind: "turn-failed"; error: BrigError }
  | { kind: "turn-interrupted" };

/** Advice is for the model, and is reported as a warning. */
type CallActivity = Exclude<ToolActivity, { kind: "advice" }>;

/** The conversation reached its limit, the endpoint refused it as too long, or a person asked for it. */
export type CompactionReason = "limit" | "overflow" | "request";

/** Must not throw. */
export type AgentListener = (event: AgentEvent) => void;
