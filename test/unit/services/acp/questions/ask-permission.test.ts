import type { RequestPermissionRequest } from "@agentclientprotocol/sdk";
import { expect, it } from "vitest";
import type { ApprovalRequest } from "../../../../../src/agent/approvals/approvals.js";
import { type ClientLink, featuresOf } from "../../../../../src/services/acp/client-link.js";
import { clientApprover } from "../../../../../src/services/acp/questions/ask-permission.js";
import { expectExact, schema } from "../../../../support/acp-schema.js";
import { approvalRequest } from "../../../../support/approval-request.js";

/** What the client is asked. */
async function asked(request: ApprovalRequest): Promise<RequestPermissionRequest> {
  const questions: RequestPermissionRequest[] = [];
  const link: ClientLink = {
    features: featuresOf(undefined),
    update: async () => undefined,
    elicit: () => Promise.reject(new Error("not asked")),
    askPermission: async (question) => {
      questions.push(question);
      return { outcome: { outcome: "cancelled" } };
    },
  };
  const approver = clientApprover(link, { sessionId: () => "s", beforeAsking: async () => undefined });
  expect(await approver.ask(request, { signal: undefined })).toBe("abort");
  const [question] = questions;
  if (question === undefined) throw new Error("nothing was asked");
  expectExact(schema.zRequestPermissionRequest, question);
  return question;
}

it.each([
  ["a script with its shell", ["/bin/bash", "-lc", "a 'b'"], "```sh\n/bin/bash -lc\na 'b'\n```"],
  ["any other command quoted", ["echo", "a b"], "```sh\necho 'a b'\n```"],
])("a command is shown whole: %s", async (_, argv, text) => {
  const { toolCall } = await asked(approvalRequest({ argv }));
  expect(toolCall.content?.[0]).toMatchObject({ content: { text } });
});

it("arguments that are nested too deeply to be shown are not shown as none", async () => {
  let nested: object = {};
  for (let level = 0; level < 1000; level++) nested = { nested };
  const { toolCall } = await asked({
    ...approvalRequest(),
    action: {
      kind: "mcp-call",
      tool: "server__tool",
      server: "server",
      name: "tool",
      title: null,
      arguments: { nested },
      annotations: { readOnly: null, destructive: null, idempotent: null, openWorld: null },
      approval: "prompt",
    },
  });
  expect(JSON.stringify(toolCall.content)).toContain("nested too deeply to be shown");
});
