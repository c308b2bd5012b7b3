import { escalationRefusal } from "../policy/approval-decision.js";
import type { ActionReview } from "../tools/approval.js";
import type { ApprovalOptions } from "./approvals.js";

/** The approvals of a session, loaded with the first action: judging a script takes a parser, and most of a session's start is loading. */
export function lateApprovals(options: ApprovalOptions): ActionReview {
  let loading: Promise<ActionReview> | undefined;
  const approvals = () => {
    loading ??= import("./approvals.js").then(({ createApprovals }) => createApprovals(options));
    return loading;
  };
  return {
    escalationRefusal: (tool) => escalationRefusal(options.situation().policy, tool),
    review: async (action, call) => await (await approvals()).review(action, call),
    reviewFailure: async (action, attempt, call) =>
      await (await approvals()).reviewFailure(action, attempt, call),
  };
}
