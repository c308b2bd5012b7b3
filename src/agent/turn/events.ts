import type { BrigError } from "../../errors.js";
import type { TokenUsage } from "../../model/model-client.js";
import type { SessionReceipt } from "../../session/receipts.js";
import type { FileChange } from "../../tools/review/action.js";
import type { AnsweredApproval, ApprovalQuestion, PlanStep } from "../../tools/tool.js";
import type { ResourceUsage } from "../../tools/tool-sandbox.js";
import type { WebSearch } from "./web-search-event.js";

/**
 * Everything that happens in a session, in this order: `session-started`, `turn-started`; then, as often as it takes, the
 * model's `text-delta`, `reasoning`, `message` and, for each call, `call-started`, perhaps an `approval-requested` and its
 * `approval-answered`, a command's `command-declined`, or its `command-started`, `command-output` and `command-ended`, a patch's
 * `patch-started` and `patch-ended`, or a `plan-updated`, and `call-ended`; at the end exactly one of `turn-completed`, `turn-failed` and
 * `turn-interrupted`. `sandbox-ready` comes once for each sandbox, whenever it is; a `command-ended` may come after its call's end, for a
 * command that outlived it. A `compaction-started` and its `compacted` come before a turn's first response, between two of them, or
 * between turns; `web-searched`, `reconnecting` and `warning` at any time of a turn.
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
  /** It was not let start; `reason` is what the model is told. */
  | { kind: "command-declined"; callId: string; argv: readonly string[]; cwd: string; reason: string }
  /** A person is asked now, and the call waits for the answer. */
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
  /** The model's provider looked something up on the web. */
  | ({ kind: "web-searched" } & WebSearch)
  /** A response broke off and is asked for again after the delay. */
  | { kind: "reconnecting"; attempt: number; maxAttempts: number; delayMs: number; reason: string }
  /** The model is asked to sum up the conversation, which may take a while; `compacted` follows, or else all stays as it is. */
  | { kind: "compaction-started"; reason: CompactionReason }
  /** A summary took the place of what was said. Sizes are partly estimates. */
  | { kind: "compacted"; reason: CompactionReason; tokensBefore: number; tokensAfter: number }
  /** The session's sandboxes were closed, and there is something to tell: the last event, if it comes at all. */
  | { kind: "receipt"; receipt: SessionReceipt }
  | { kind: "warning"; message: string }
  | { kind: "turn-completed"; usage: TokenUsage }
  | { kind: "turn-failed"; error: BrigError }
  | { kind: "turn-interrupted" };

/** The conversation reached its limit; the endpoint said it is too long; or somebody asked for it. */
export type CompactionReason = "limit" | "overflow" | "request";

/** Must not throw: it is told, not asked. */
export type AgentListener = (event: AgentEvent) => void;
