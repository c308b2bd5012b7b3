import { expect, it } from "vitest";
import { withDeclineReason } from "../../../../src/cli/display/declined-call.js";

it("the end of a declined call is told to a person in words, and to the model as it was", () => {
  const ended = {
    kind: "call-ended",
    callId: "c",
    name: "exec_command",
    content: 'exec_command failed for `rm`: CreateProcess { message: "Rejected" }',
    success: false,
  } as Parameters<typeof withDeclineReason>[0];
  expect(withDeclineReason(ended, new Map([["c", "rejected by user"]])).content).toBe(
    "not run: rejected by user",
  );
  expect(withDeclineReason(ended, new Map()).content).toBe(ended.content);
});
