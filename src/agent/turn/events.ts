import type { BrigError } from "../../errors.js";
import type { TokenUsage } from "../../model/model-client.js";
import type { SessionReceipt } from "../../session/receipts.js";
import type { FileChange } from "../../tools/review/action.js";
import type { AnsweredApproval, ApprovalQuestion, PlanStep } from "../../tools/tool.js";
import type { ResourceUsage } from "../../tools/tool-sandbox.js";
import type { WebSearch } from "./web-search-event.js";

/**
 * Everything that happens in a session, in this order:
 *
 * 1. `session-started` once, then `turn-started` for each turn.
 * 2. For each response of the model: `text-delta`, `reasoning`, `message` and its calls. A call is
 *    `call-started`, then perhaps `approval-requested` and `approval-answered`, then for a command
 *    `command-declined` or `command-started`, `command-output` and `command-ended`, for a patch
 *    `patch-started` and `patch-ended`, for a plan `plan-updated`, and at last `call-ended`. A command that
 *    outlives its call has its `command-ended` later.
 * 3. Exactly one of `turn-completed`, `turn-failed` and `turn-interrupted`.
 *
 * `sandbox-ready` comes when a sandbox has started. `compaction-started` and `compacted` come before a turn's
 * first response, between two responses, or between turns; `web-searched`, `reconnecting` and `warning` at
 * any time.
 */
export type AgentEvent =
  | { kind: "session-started"; threadId: string; sessionFile: string | null }
  | { kind: "turn-started" }
  | { kind: "sandbox-ready"; sandboxId: string; startMs: number }
  | { kind: "text-delta"; text: string }
  | { kind: "reasoning"; text: string }
  | { kind: "message"; text: string }
  | { kind: "call-started"; callId: string; name: string; input: string }
  | { kind: "command-started"; callId: string; argv: readonly string[]; cwd: string }
  | { kind: "command-output"; callId: string; chunk: Uint8Array }
  | {
      kind: "command-ended";
      callId: string;
      exitCode: number;
      output: string;
      durationMs: number;
      usage: ResourceUsage;
    }
  /** The command was not allowed to start; the model reads the `reason`. */
  | { kind: "command-declined"; callId: string; argv: readonly string[]; cwd: string; reason: string }
  /** A person is asked, and the call waits for the answer. */
  | ({ kind: "approval-requested"; callId: string } & ApprovalQuestion)
  | ({
      kind: "approval-answered";
      callId: string;
      answer: AnsweredApproval;
      waitedMs: number;
    } & ApprovalQuestion)
  | { kind: "patch-started"; callId: string; changes: readonly FileChange[]; patch: string }
  | { kind: "patch-ended"; callId: string; changes: readonly FileChange[]; success: boolean }
  | { kind: "plan-updated"; callId: string; explanation: string | null; steps: readonly PlanStep[] }
  | {
      kind: "call-ended";
      callId: string;
      name: string;
      content: string;
      success: boolean;
      durationMs: number;
    }
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

/** The conversation reached its limit, the endpoint refused it as too long, or a person asked for it. */
export type CompactionReason = "limit" | "overflow" | "request";

/** Must not throw. */
export type AgentListener = (event: AgentEvent) => void;
