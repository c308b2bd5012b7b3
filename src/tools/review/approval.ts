import { refusalText } from "../../policy/approval-decision.js";
import type { SandboxDenial } from "../../policy/sandbox-denial.js";
import type { ToolCallOptions } from "../tool.js";
import type { ActionToReview, SandboxPlace } from "./action.js";

/** Whether an action starts, and in which of the two sandboxes. */
export type Verdict = { kind: "run"; place: SandboxPlace } | { kind: "refused"; reason: RefusalReason };

/** Why an action does not start. */
export type RefusalReason =
  | { by: "user" }
  /** `text` is for the model. */
  | { by: "policy"; text: string };

/** After the sandbox stood in the way: the outcome stands, or the action is done again with full access. */
export type SecondVerdict = "stands" | "stands-by-user" | "run-escalated";

/** An action that failed in the sandbox. */
export interface DeniedAttempt {
  /** Looks for what the sandbox refused; null where it was not the sandbox that made the attempt fail. */
  findDenial(sandbox: { hasNetwork: boolean }): SandboxDenial | null;
}

/**
 * Who decides whether an action starts, and where. `review` and `reviewFailure` reject with `aborted` where the person ends the turn,
 * and with the reason of the call's signal where that is aborted meanwhile.
 */
export interface ActionReview {
  /** What to answer a model that asks to leave the sandbox where that is no question; null where it may ask. */
  escalationRefusal(tool: string): string | null;
  /** Before an action starts. */
  review(action: ActionToReview, call: ToolCallOptions): Promise<Verdict>;
  /** After an attempt in the sandbox that failed. */
  reviewFailure(
    action: ActionToReview,
    attempt: DeniedAttempt,
    call: ToolCallOptions,
  ): Promise<SecondVerdict>;
}

/** Where nobody decides: everything runs in the sandbox. */
export const unreviewed: ActionReview = {
  escalationRefusal: (tool) => refusalText("escalation", { policy: "never", tool, command: "" }),
  review: () => Promise.resolve({ kind: "run", place: "sandbox" }),
  reviewFailure: () => Promise.resolve("stands"),
};
