import type { ToolCallOptions } from "../tool.js";
import type { ToolExit } from "../tool-sandbox.js";
import type { ActionToReview, SandboxPlace } from "./action.js";
import type { ActionReview, DeniedAttempt, RefusalReason } from "./approval.js";

/** Added to the output of an attempt that the person did not let be repeated. */
export const RETRY_DECLINED = "\n[not run again with full access: rejected by user]\n";

/** One try at an action. */
export interface Attempt<Outcome> {
  outcome: Outcome;
  /** How to look for what made it fail; null where it did not fail. */
  findDenial: DeniedAttempt["findDenial"] | null;
}

export type ReviewedOutcome<Outcome> =
  | { kind: "refused"; reason: RefusalReason }
  | {
      kind: "done";
      outcome: Outcome;
      /** The person was asked to let it be done again with full access, and declined. */
      isRetryDeclined: boolean;
    };

export interface ReviewedAction<Outcome> {
  action: ActionToReview;
  /** `earlier` is what a first attempt in the sandbox came to, null for the first. */
  attempt(place: SandboxPlace, earlier: Outcome | null): Promise<Attempt<Outcome>>;
}

/** Does what the review allows, where it allows it: at most a first time in the sandbox, and a second with full access. */
export async function doReviewed<Outcome>(
  review: ActionReview,
  { action, attempt }: ReviewedAction<Outcome>,
  call: ToolCallOptions,
): Promise<ReviewedOutcome<Outcome>> {
  const first = await review.review(action, call);
  if (first.kind === "refused") return first;
  const { outcome, findDenial } = await attempt(first.place, null);
  if (first.place === "escalated" || findDenial === null)
    return { kind: "done", outcome, isRetryDeclined: false };
  const second = await review.reviewFailure(action, { findDenial }, call);
  if (second !== "run-escalated")
    return { kind: "done", outcome, isRetryDeclined: second === "stands-by-user" };
  const { outcome: last } = await attempt("escalated", outcome);
  return { kind: "done", outcome: last, isRetryDeclined: false };
}

/** Whether a command ended in a way that a sandbox can be the cause of. */
export function failed({ exitCode, startFailure, timedOut }: ToolExit): boolean {
  return exitCode !== 0 && startFailure === null && !timedOut;
}
