import { describe, expect, it } from "vitest";
import {
  type CommandSituation,
  decideAfterDenial,
  decideCommand,
  decideMcpCall,
  decidePatch,
  escalationRefusal,
  refusalText,
} from "../../../../src/sandbox/policy/approval-decision.js";
import { APPROVAL_POLICIES, type ApprovalPolicy } from "../../../../src/sandbox/policy/approval-policy.js";

const granular = (sandbox_approval: boolean): ApprovalPolicy => ({
  granular: {
    sandbox_approval,
    rules: true,
    skill_approval: true,
    request_permissions: true,
    mcp_elicitations: true,
  },
});
const policies: ApprovalPolicy[] = [...APPROVAL_POLICIES, granular(true), granular(false)];
const both = [false, true];
const situations: CommandSituation[] = policies.flatMap((policy) =>
  (["safe", "dangerous", "other"] as const).flatMap((risk) =>
    both.flatMap((isRestricted) =>
      both.flatMap((isEscalationAsked) =>
        both.map((canEscalate) => ({ policy, risk, isRestricted, isEscalationAsked, canEscalate })),
      ),
    ),
  ),
);
const decided = situations.map((situation) => ({ situation, decision: decideCommand(situation) }));

describe("of all decisions about a command", () => {
  it("none lets it leave the sandbox without a person's word", () => {
    for (const { decision } of decided)
      expect(decision).not.toMatchObject({ kind: "run", place: "escalated" });
  });

  it("none asks under never, nor under a granular policy that says not to", () => {
    for (const { situation, decision } of decided) {
      const { policy } = situation;
      if (policy === "never" || (typeof policy === "object" && !policy.granular.sandbox_approval))
        expect(decision.kind).not.toBe("ask");
    }
  });

  it("leaving the sandbox is a question only where a model may ask it, there is a sandbox to leave, and one to go to", () => {
    for (const { situation, decision } of decided) {
      if (decision.kind !== "ask" || decision.place !== "escalated") continue;
      expect(situation).toMatchObject({
        policy: "on-request",
        isRestricted: true,
        isEscalationAsked: true,
        canEscalate: true,
      });
    }
  });

  it("a safe command runs unless its model asks for more", () => {
    for (const { situation, decision } of decided)
      if (situation.risk === "safe" && !situation.isEscalationAsked)
        expect(decision).toEqual({ kind: "run" });
  });

  it("a dangerous one never runs unasked, but where the user has said that nobody is asked and nothing is held back", () => {
    for (const { situation, decision } of decided)
      if (situation.risk === "dangerous" && decision.kind === "run")
        expect(situation).toMatchObject({ policy: "never", isRestricted: false });
  });
});

describe("after the sandbox made an attempt fail", () => {
  const secondTry = (kind: "command" | "patch", policy: ApprovalPolicy) =>
    decideAfterDenial(kind, { policy, isRestricted: true, canEscalate: true });

  it.each<[ApprovalPolicy, string, string]>([
    ["untrusted", "ask", "ask"],
    ["on-failure", "ask", "ask"],
    ["on-request", "stands", "ask"],
    ["never", "stands", "stands"],
    [granular(true), "ask", "ask"],
    [granular(false), "stands", "stands"],
  ])("%j: of a command %s, of a patch %s", (policy, command, patch) => {
    expect(secondTry("command", policy)).toBe(command);
    expect(secondTry("patch", policy)).toBe(patch);
  });

  it("nothing is where there is nowhere to go", () => {
    for (const policy of policies) {
      expect(decideAfterDenial("command", { policy, isRestricted: false, canEscalate: true })).toBe("stands");
      expect(decideAfterDenial("command", { policy, isRestricted: true, canEscalate: false })).toBe("stands");
    }
  });
});

it("a patch is asked about before it starts under untrusted alone", () => {
  expect(policies.map((policy) => decidePatch(policy).kind)).toEqual([
    "ask",
    "run",
    "run",
    "run",
    "run",
    "run",
  ]);
});

describe("the model reads", () => {
  const about = { tool: "shell", command: "bash -c 'rm -f x'" };

  it.each<[ApprovalPolicy, string]>([
    ["untrusted", "UnlessTrusted"],
    ["on-failure", "OnFailure"],
    ["never", "Never"],
    [granular(true), "Granular"],
  ])("under %j that asking to leave is out of place", (policy, name) => {
    expect(refusalText("escalation", { ...about, policy })).toBe(
      `approval policy is ${name}; reject command — you should not ask for escalated permissions if the approval policy is ${name}`,
    );
    expect(refusalText("escalation", { ...about, policy, tool: "exec_command" })).toContain(
      "you cannot ask for escalated permissions",
    );
  });

  it("why a command does not start", () => {
    expect(refusalText("dangerous", { ...about, policy: "never" })).toBe(
      "`bash -c 'rm -f x'` rejected: rm -f style commands are not permitted. Use a safer approach",
    );
    expect(refusalText("granular", { ...about, policy: granular(false) })).toBe(
      "approval required by policy, but AskForApproval::Granular.sandbox_approval is false",
    );
    expect(refusalText("nobody", { ...about, policy: "untrusted" })).toBe(
      "approval required by policy, but nobody is there to approve it",
    );
  });
});

describe("a call of an MCP server's tool", () => {
  const hints = [true, false, null];
  const annotations = hints.flatMap((readOnly) =>
    hints.flatMap((destructive) => hints.map((openWorld) => ({ readOnly, destructive, openWorld }))),
  );
  const auto = { policy: "on-request", isRestricted: true, approval: "auto" } as const;

  it("needs a question if the server says that it destroys, or does not say that it is harmless", () => {
    for (const one of annotations) {
      const { readOnly, destructive, openWorld } = one;
      const isHarmless =
        destructive !== true && (readOnly === true || (destructive === false && openWorld === false));
      expect(decideMcpCall({ ...auto, annotations: one }), JSON.stringify(one)).toEqual(
        isHarmless ? { kind: "run" } : { kind: "ask", place: "sandbox" },
      );
    }
  });

  it("needs one always or never where the configuration says so", () => {
    for (const one of annotations) {
      expect(decideMcpCall({ ...auto, approval: "prompt", annotations: one }).kind).toBe("ask");
      expect(decideMcpCall({ ...auto, approval: "approve", annotations: one }).kind).toBe("run");
    }
  });

  const harmful = { readOnly: false, destructive: true, openWorld: true };
  it("needs none under never and with full access, and is refused where no question may be asked", () => {
    const decide = (changed: object) => decideMcpCall({ ...auto, annotations: harmful, ...changed });
    expect(decide({ policy: "never" })).toEqual({ kind: "run" });
    expect(decide({ isRestricted: false })).toEqual({ kind: "run" });
    const without = granular(true) as Extract<ApprovalPolicy, object>;
    expect(decide({ policy: without }).kind).toBe("ask");
    without.granular.mcp_elicitations = false;
    expect(decide({ policy: without })).toEqual({ kind: "refuse", cause: "granular-mcp" });
  });
});

it("a model may ask to leave the sandbox under on-request only", () => {
  for (const policy of policies) {
    const refusal = escalationRefusal(policy, "exec_command");
    if (policy === "on-request") expect(refusal).toBeNull();
    else expect(refusal).toContain("you cannot ask for escalated permissions");
  }
});
