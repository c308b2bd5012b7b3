import { describe, expect, it } from "vitest";
import { approvalGuidance } from "../../../../src/agent/context/approvals-guidance.js";
import { decideAfterDenial, decideCommand } from "../../../../src/sandbox/policy/approval-decision.js";
import { APPROVAL_POLICIES, type ApprovalPolicy } from "../../../../src/sandbox/policy/approval-policy.js";

const granular = (sandbox_approval: boolean): ApprovalPolicy => ({
  granular: {
    sandbox_approval,
    rules: false,
    skill_approval: false,
    request_permissions: false,
    mcp_elicitations: false,
  },
});

describe("what the model is told of a policy", () => {
  it.each<ApprovalPolicy>([...APPROVAL_POLICIES, granular(true), granular(false)])(
    "is what happens: %j",
    (policy) => {
      const text = approvalGuidance(policy);
      const restricted = { policy, isRestricted: true, canEscalate: true };
      const mayAsk = decideCommand({ ...restricted, risk: "other", isEscalationAsked: true }).kind === "ask";
      expect(text).toContain(
        `\`approval_policy\` is \`${typeof policy === "string" ? policy : "granular"}\`: `,
      );
      expect(text.includes("You cannot ask to leave the sandbox")).toBe(!mayAsk);
      expect(text.includes("`justification`:")).toBe(mayAsk);
      const dangerous = decideCommand({ ...restricted, risk: "dangerous", isEscalationAsked: false }).kind;
      if (policy !== "untrusted")
        expect(text).toMatch(
          dangerous === "refuse"
            ? /destructive, such as `rm -rf`, are refused/
            : /(?:destructive|those that look destructive)[^.]*(?:are asked about|,)/,
        );
      const again = decideAfterDenial("command", restricted);
      expect(text.includes("again outside of it")).toBe(again !== "stands");
    },
  );

  it.each<ApprovalPolicy>([...APPROVAL_POLICIES, granular(true), granular(false)])(
    "and with full access has no word of leaving a sandbox: %j",
    (policy) => {
      const text = approvalGuidance(policy, { isRestricted: false });
      expect(text).toContain("there is no sandbox to ask to leave");
      expect(text).not.toMatch(/justification|second container|You cannot ask|outside/);
      const risky = {
        policy,
        risk: "dangerous",
        isRestricted: false,
        isEscalationAsked: false,
        canEscalate: true,
      } as const;
      const { kind } = decideCommand(risky);
      if (policy !== "untrusted")
        expect(text).toMatch(
          { run: /nobody is asked\. /, ask: /is asked about .*rm -rf/, refuse: /rm -rf.* are refused/ }[kind],
        );
    },
  );
});
