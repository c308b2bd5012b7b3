import { describe, expect, it } from "vitest";
import type { ApprovalRequest } from "../../../../../../src/agent/approvals/approvals.js";
import {
  approvalAnswer,
  approvalQuestion,
} from "../../../../../../src/services/mcp-server/codex/questions/approval-question.js";

const origin = { threadId: "thread", turnId: "turn", requestId: 7 };

function request(change: Partial<ApprovalRequest> = {}, argv = ["bash", "-lc", "make"]): ApprovalRequest {
  return {
    callId: "call",
    action: {
      kind: "command",
      tool: "exec_command",
      argv,
      cwd: "/work",
      takesInput: false,
      escalation: { isAsked: true, justification: "May I?", prefixRule: null },
    },
    place: "escalated",
    reason: null,
    denial: null,
    prefix: ["make"],
    ...change,
  };
}

describe("the question", () => {
  it("has the parameters of Codex and a form", () => {
    const { message, requestedSchema, ...extras } = approvalQuestion(request(), origin);
    expect(extras).toEqual({
      threadId: "thread",
      codex_elicitation: "exec-approval",
      codex_mcp_tool_call_id: "7",
      codex_event_id: "turn",
      codex_call_id: "call",
      codex_command: ["bash", "-lc", "make"],
      codex_cwd: "/work",
      codex_parsed_cmd: [{ type: "unknown", cmd: "make" }],
    });
    expect(message.split("\n")).toEqual([
      "Allow Codex to run `bash -lc make` in `/work`?",
      "It would run outside the sandbox: as root, with a network, and with full access to the workspace.",
      "The agent says: “May I?”",
    ]);
    expect(requestedSchema.properties.decision).toMatchObject({
      enum: ["approved", "approved_for_session", "approved_prefix", "denied", "abort"],
    });
  });

  it("cannot be given a line, or a hidden part, by a command", () => {
    const script = "true\nAllow Codex to run `ls`?\u001b[2K\u202e";
    const { message } = approvalQuestion(request({ place: "sandbox" }, ["bash", "-lc", script]), origin);
    expect(message.split("\n")).toHaveLength(2);
    for (const hidden of ["\u001b", "\u202e"]) expect(message).not.toContain(hidden);
  });

  it("says how much of a long command it leaves out, and shows both ends", () => {
    const { message } = approvalQuestion(request({}, ["echo", "a".repeat(10_000), "the-end"]), origin);
    expect(message.length).toBeLessThan(6000);
    expect(message).toMatch(/characters left out … a+ the-end`/);
  });

  it("offers no prefix that is too long to take in", () => {
    const { requestedSchema } = approvalQuestion(request({ prefix: ["x".repeat(200)] }), origin);
    expect(requestedSchema.properties.decision?.enum).not.toContain("approved_prefix");
  });
});

describe("the answer", () => {
  const accept = (decision: unknown) => ({ action: "accept", content: { decision } });
  const amendment = { approved_execpolicy_amendment: { proposed_execpolicy_amendment: ["make"] } };
  it.each([
    [{ decision: "approved" }, "approved"],
    [{ decision: "approved_for_session" }, "approved_for_session"],
    [{ decision: "abort" }, "abort"],
    [{ decision: amendment }, { approvedPrefix: ["make"] }],
    [accept("approved"), "approved"],
    [accept("approved_for_session"), "approved_for_session"],
    [accept("approved_prefix"), { approvedPrefix: ["make"] }],
    [accept("abort"), "abort"],
    [accept("denied"), "denied"],
    [accept("Yes"), "denied"],
    [accept(true), "denied"],
    [{ action: "accept" }, "denied"],
    [{ action: "accept", content: null }, "denied"],
    [{ action: "decline", content: { decision: "approved" } }, "denied"],
    [{ action: "cancel" }, "denied"],
    [{ decision: "denied" }, "denied"],
    [{ decision: {} }, "denied"],
    [{ decision: null, action: "accept" }, "denied"],
    [{}, "denied"],
    [null, "denied"],
    ["approved", "denied"],
  ])("%j means %j", (reply, answer) => {
    expect(approvalAnswer(reply, { prefix: ["make"] })).toEqual(answer);
  });

  it("approves no prefix that was not offered", () => {
    expect(approvalAnswer(accept("approved_prefix"), { prefix: null })).toBe("denied");
  });
});
