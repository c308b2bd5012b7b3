import { escalationRefusal } from "../../sandbox/index.js";
import type { ActionReview } from "../../tools/index.js";
import type { SessionSetting } from "../session/setting.js";
import type { ApprovalSituation, Approver } from "./approvals.js";

/** The approvals of a session whose setting may change. */
export interface LazyApprovals extends ActionReview {
  /** Called when the setting changes, because earlier approvals were given for the old one. */
  forget(): void;
}

/**
 * Loads the code at the first action: it parses scripts, and loading is most of what a session's start costs.
 */
export function lazyApprovals(options: {
  setting: () => SessionSetting;
  canEscalate: boolean;
  approver: Approver | undefined;
}): LazyApprovals {
  let loading: Promise<ActionReview> | null = null;
  const situation = (): ApprovalSituation => {
    const { sandboxMode, approvalPolicy = "never", network } = options.setting();
    return {
      policy: approvalPolicy,
      isRestricted: sandboxMode !== "danger-full-access",
      canEscalate: options.canEscalate,
      hasNetwork: network.kind !== "none",
    };
  };
  const approvals = () => {
    loading ??= import("./approvals.js").then(
      ({ SessionApprovals }) => new SessionApprovals({ situation: situation(), approver: options.approver }),
    );
    return loading;
  };
  return {
    escalationRefusal: (tool) => escalationRefusal(situation().policy, tool),
    review: async (action, call) => await (await approvals()).review(action, call),
    reviewFailure: async (action, attempt, call) =>
      await (await approvals()).reviewFailure(action, attempt, call),
    forget() {
      loading = null;
    },
  };
}
