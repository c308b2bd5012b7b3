import { z } from "zod";
import type { CommandEnd } from "../../sandbox/index.js";
import { findDenial } from "../../sandbox/index.js";
import type { ReadCommand } from "../command/read-command.js";
import type { ParameterAliases } from "../define-tool.js";
import type { ToolCallOptions } from "../tool.js";
import type { ActionToReview, EscalationRequest, SandboxPlace } from "./action.js";
import type { ActionReview, DeniedAttempt, RefusalReason, ReviewedCall } from "./approval.js";

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
  /** Absent if the action is no command. */
  command?: ReadCommand | undefined;
  /** `earlier` is the outcome of the first attempt, in the sandbox; null for the first attempt. */
  attempt(place: SandboxPlace, earlier: Outcome | null): Promise<Attempt<Outcome>>;
}

/** Runs an action as the review allows it: at most once in the sandbox, and then once with full access. */
export async function runReviewed<Outcome>(
  review: ActionReview,
  { action, command, attempt }: ReviewedAction<Outcome>,
  call: ToolCallOptions,
): Promise<ReviewedOutcome<Outcome>> {
  const reviewed: ReviewedCall = { ...call, command };
  const first = await review.review(action, reviewed);
  if (first.kind === "refused") return first;
  const { outcome, findDenial } = await attempt(first.place, null);
  if (first.place === "escalated" || findDenial === null)
    return { kind: "done", outcome, isRetryDeclined: false };
  const second = await review.reviewFailure(action, { findDenial }, reviewed);
  if (second !== "run-escalated")
    return { kind: "done", outcome, isRetryDeclined: second === "stands-by-user" };
  const { outcome: last } = await attempt("escalated", outcome);
  return { kind: "done", outcome: last, isRetryDeclined: false };
}

/** For the attempt of a command. Null if the sandbox cannot be the reason that it ended like this. */
export function denialFinder(end: CommandEnd, output: string): Attempt<unknown>["findDenial"] {
  const { exitCode, startFailure, timedOut } = end;
  if (exitCode === 0 || startFailure !== null || timedOut) return null;
  return (sandbox) => findDenial({ ...end, output }, sandbox);
}

/** The parameters with which a model asks to leave the sandbox. */
export const escalationParameters = {
  sandbox_permissions: z
    .enum(["use_default", "require_escalated"])
    .optional()
    .describe("`require_escalated` asks to run outside the sandbox's limits. Default: use_default."),
  justification: z
    .string()
    .optional()
    .describe("With require_escalated: one sentence that asks the user for it, as a question."),
  prefix_rule: z
    .array(z.string())
    .optional()
    .describe("With require_escalated: a command prefix that could be allowed in the future."),
};

/** The parameter that older models use instead of `sandbox_permissions`. */
export const escalationAliases: ParameterAliases = {
  with_escalated_permissions: {
    parameter: "sandbox_permissions",
    convert: (value) => (value === true ? "require_escalated" : "use_default"),
  },
};

interface EscalationArguments {
  sandbox_permissions?: "use_default" | "require_escalated" | undefined;
  justification?: string | undefined;
  prefix_rule?: readonly string[] | undefined;
}

export function escalationOf(args: EscalationArguments): EscalationRequest {
  return {
    isAsked: args.sandbox_permissions === "require_escalated",
    justification: args.justification ?? null,
    prefixRule: args.prefix_rule ?? null,
  };
}

const UNUSED_JUSTIFICATION =
  '`justification` requires an explicit `sandbox_permissions`; use `sandbox_permissions: "require_escalated"` for unsandboxed ' +
  "execution, or omit `justification`.";

/** Refuses a request to leave the sandbox if none are allowed, and a justification without a request. */
export function refusedEscalation(
  review: ActionReview,
  tool: string,
  args: EscalationArguments,
): string | null {
  if (args.justification !== undefined && args.sandbox_permissions === undefined) return UNUSED_JUSTIFICATION;
  return escalationOf(args).isAsked ? review.escalationRefusal(tool) : null;
}
