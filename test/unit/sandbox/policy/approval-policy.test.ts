import { describe, expect, it } from "vitest";
import {
  APPROVAL_POLICIES,
  nameOfPolicy,
  parseApprovalPolicy,
} from "../../../../src/sandbox/policy/approval-policy.js";

describe("an approval policy", () => {
  it.each(APPROVAL_POLICIES)("is read by its name: %s", (name) => {
    expect(parseApprovalPolicy(name)).toEqual({ kind: "parsed", policy: name });
    expect(nameOfPolicy(name)).toBe(name);
  });

  it("is read as a table, where what is not said is no", () => {
    const parsed = parseApprovalPolicy({ granular: { sandbox_approval: true } });
    expect(parsed).toMatchObject({
      kind: "parsed",
      policy: { granular: { sandbox_approval: true, rules: false, mcp_elicitations: false } },
    });
    if (parsed.kind === "parsed") expect(nameOfPolicy(parsed.policy)).toBe("granular");
  });

  it("says what was meant", () => {
    expect(parseApprovalPolicy("on-requst")).toEqual({
      kind: "refused",
      reason: '"on-requst" is not an approval policy: did you mean on-request?',
    });
    expect(parseApprovalPolicy("whenever it suits me")).toEqual({
      kind: "refused",
      reason:
        '"whenever it suits me" is not an approval policy: use one of untrusted, on-failure, on-request, never',
    });
  });

  it.each([null, 1, [], {}, { granular: { sandbox_aproval: true } }, { granular: { rules: "yes" } }])(
    "is never a guess: %j",
    (source) => {
      expect(parseApprovalPolicy(source).kind).toBe("refused");
    },
  );
});
