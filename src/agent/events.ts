import type { BrigError } from "../errors.js";
import type { TokenUsage } from "../model/model-client.js";
import type { ResourceUsage } from "../tools/sandbox.js";
import type { FileChange, PlanStep } from "../tools/tool.js";

/**
 * Everything that happens in a session, in this order: `session-started`, `turn-started`; then, as often as it takes, the
 * model's `text-delta`, `reasoning`, `message` and, for each call, `call-started`, perhaps a command's `command-started`,
 * `command-output` and `command-ended`, a patch's `patch-started` and `patch-ended`, or a `plan-updated`, and `call-ended`; at the end exactly one of `turn-completed`, `turn-failed` and
 * `turn-interrupted`. `sandbox-ready` comes once, whenever the sandbox is; a `command-ended` may come after its call's end, for a
 * command that outlived it.
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
  | { kind: "patch-started"; callId: string; changes: readonly FileChange[] }
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
  /** A response broke off and is asked for again after the delay. */
  | { kind: "reconnecting"; attempt: number; maxAttempts: number; delayMs: number; reason: string }
  | { kind: "warning"; message: string }
  | { kind: "turn-completed"; usage: TokenUsage }
  | { kind: "turn-failed"; error: BrigError }
  | { kind: "turn-interrupted" };

/** Must not throw: it is told, not asked. */
export type AgentListener = (event: AgentEvent) => void;
