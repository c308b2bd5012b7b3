import { escalationRefusal } from "../../policy/approval-decision.js";
import type { ActionReview } from "../../tools/review/approval.js";
import type { ApprovalSituation, Approver } from "./approvals.js";

/** The approvals of a session, in one setting after the other. */
export interface LazyApprovals extends ActionReview {
  /** In a new setting nothing counts any more that was approved in the one before: no question has named it. */
  forget(): void;
}

/** Loaded with the first action: judging a script takes a parser, and most of a session's start is loading. */
export function lazyApprovals(options: {
  situation: () => ApprovalSituation;
  approver: Approver | undefined;
}): LazyApprovals {
  let loading: Promise<ActionReview> | null = null;
  const approvals = () => {
    loading ??= import("./approvals.js").then(({ createApprovals }) =>
      createApprovals({ situation: options.situation(), approver: options.approver }),
    );
    return loading;
  };
  return {
    escalationRefusal: (tool) => escalationRefusal(options.situation().policy, tool),
    review: async (action, call) => await (await approvals()).review(action, call),
    reviewFailure: async (action, attempt, call) =>
      await (await approvals()).reviewFailure(action, attempt, call),
    forget() {
      loading = null;
    },
  };
}
