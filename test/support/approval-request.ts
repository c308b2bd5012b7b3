import type { ApprovalRequest } from "../../src/agent/approvals/approvals.js";

export interface AskedCommand extends Partial<Omit<ApprovalRequest, "action">> {
  argv?: readonly string[];
  cwd?: string;
  justification?: string;
}

/** The question whether a command may leave the sandbox. */
export function approvalRequest({
  argv = ["npm", "install"],
  cwd = "/work",
  justification,
  ...more
}: AskedCommand = {}): ApprovalRequest {
  return {
    callId: "call",
    place: "escalated",
    reason: null,
    denial: null,
    prefix: null,
    action: {
      kind: "command",
      tool: "shell",
      argv,
      cwd,
      takesInput: false,
      escalation: { isAsked: true, justification: justification ?? null, prefixRule: null },
    },
    ...more,
  };
}
