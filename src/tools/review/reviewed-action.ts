import { findDenial } from "../../sandbox/index.js";
import type { ToolCallOptions } from "../tool.js";
import type { ToolExit } from "../tool-sandbox.js";
import type { ActionToReview, SandboxPlace } from "./action.js";
import type { ActionReview, DeniedAttempt, RefusalReason } from "./approval.js";

/** Added to the output of an attempt if the person did not allow to repeat it with full access. */
export const RETRY_DECLINED = "\n[not run again with full access: rejected by user]\n";

export interface Attempt<Outcome> {
  outcome: Outcome;
  /** Null if the attempt did not fail. */
  findDenial: DeniedAttempt["findDenial"] | null;
}

export type ReviewedOutcome<Outcome> =
  | { kind: "refused"; reason: RefusalReason }
  | {
      kind: "done";
      outcome: Outcome;
      /** The person was asked to allow a retry with full access, and declined. */
      isRetryDeclined: boolean;
    };

export interface ReviewedAction<Outcome> {
  action: ActionToReview;
  /** `earlier` is the outcome of the first attempt, in the sandbox; null for the first attempt. */
  attempt(place: SandboxPlace, earlier: Outcome | null): Promise<Attempt<Outcome>>;
}

/** Runs an action as the review allows it: at most once in the sandbox, and then once with full access. */
export async function runReviewed<Outcome>(
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

/** For the attempt of a command. Null if the sandbox cannot be the reason that it ended like this. */
export function denialFinder(exit: ToolExit, output: string): Attempt<unknown>["findDenial"] {
  const { exitCode, startFailure, timedOut } = exit;
  if (exitCode === 0 || startFailure !== null || timedOut) return null;
  return (sandbox) => findDenial({ ...exit, output }, sandbox);
}
