import type { SandboxDenial } from "../../sandbox/index.js";
import { refusalText } from "../../sandbox/index.js";
import type { ReadCommand } from "../command/read-command.js";
import type { ToolCallOptions } from "../tool.js";
import type { ActionToReview, SandboxPlace } from "./action.js";

/** Whether an action starts, and in which of the two sandboxes. */
export type Verdict = { kind: "run"; place: SandboxPlace } | { kind: "refused"; reason: RefusalReason };

/** Who refused an action. */
export type RefusalReason =
  | { by: "user" }
  /** `text` is for the model. */
  | { by: "policy"; text: string };

/** After the sandbox made an attempt fail: its outcome stands, or the action is repeated with full access. */
export type SecondVerdict = "stands" | "stands-by-user" | "run-escalated";

/** An action that failed in the sandbox. */
export interface DeniedAttempt {
  /** Returns what the sandbox refused; null if the attempt failed for another reason. */
  findDenial(sandbox: { hasNetwork: boolean }): SandboxDenial | null;
}

/** A call whose action is reviewed. */
export interface ReviewedCall extends ToolCallOptions {
  /** The command that the action would run, as the tool has read it. */
  command?: ReadCommand | undefined;
}

/**
 * Decides whether an action starts, and in which sandbox. `review` and `reviewFailure` reject with `aborted`
 * if the person ends the turn, and with the reason of the call's signal if that is aborted.
 */
export interface ActionReview {
  /** The answer to a model that may not ask to leave the sandbox; null if it may. */
  escalationRefusal(tool: string): string | null;
  /** Called before an action starts. */
  review(action: ActionToReview, call: ToolCallOptions): Promise<Verdict>;
  /** Called after an attempt in the sandbox has failed. */
  reviewFailure(
    action: ActionToReview,
    attempt: DeniedAttempt,
    call: ToolCallOptions,
  ): Promise<SecondVerdict>;
}

/** Runs everything in the sandbox. */
export const unreviewed: ActionReview = {
  escalationRefusal: (tool) => refusalText("escalation", { policy: "never", tool, command: "" }),
  review: () => Promise.resolve({ kind: "run", place: "sandbox" }),
  reviewFailure: () => Promise.resolve("stands"),
};
