import { expect, it } from "vitest";
import { noUsage } from "../../../../src/agent/model/model-client.js";
import { usageText } from "../../../../src/cli/display/usage-text.js";

it("says what a session has used, and its agents, as far as they have used anything", () => {
  const usage = { ...noUsage, inputTokens: 30, outputTokens: 15 };
  const agentUsage = { ...noUsage, inputTokens: 20, outputTokens: 10 };
  expect(usageText({ usage, agentUsage })).toEqual(["30 tokens in, 15 out", "agents 20 tokens in, 10 out"]);
  expect(usageText({ usage, agentUsage: noUsage })).toEqual(["30 tokens in, 15 out"]);
  expect(usageText({ usage: noUsage, agentUsage: noUsage })).toEqual([]);
});
