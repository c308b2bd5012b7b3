import { describe, expect, it } from "vitest";
import type { ModelClient, TokenUsage } from "../../../../../src/agent/model/model-client.js";
import { BudgetedModel, type CostOf } from "../../../../../src/batch/runs/agents/model-agent.js";

const request = { instructions: "", input: [], tools: [] };
const used: TokenUsage = {
  inputTokens: 10,
  cachedInputTokens: 4,
  outputTokens: 1,
  reasoningOutputTokens: 0,
};

function answering(usages: (TokenUsage | null)[]): ModelClient {
  let next = 0;
  return {
    provider: "test",
    model: "test",
    maxStreamRetries: 0,
    async *stream() {
      yield { kind: "completed", usage: usages[next++] ?? null };
    },
  };
}

async function ask({ client }: BudgetedModel): Promise<void> {
  for await (const _ of client.stream(request, new AbortController().signal));
}

function budgeted(usages: (TokenUsage | null)[], maxCostUsd: number | null) {
  const costOf: CostOf = (usage) => (usage === null ? null : usage.inputTokens / 10);
  return new BudgetedModel(answering(usages), {
    budget: { maxTurns: null, maxTokens: null, maxCostUsd },
    costOf,
  });
}

describe("a model with a limit of cost", () => {
  it("answers until the requests before have cost as much", async () => {
    const model = budgeted([used, used, used], 2);
    await ask(model);
    await ask(model);
    expect(model).toMatchObject({ costUsd: 2, turns: 2, exhausted: null });
    await expect(ask(model)).rejects.toMatchObject({ code: "agents.budget" });
    expect(model).toMatchObject({ turns: 2, exhausted: "the limit of 2 US dollars is reached" });
  });

  it("ends where nobody can say what it has cost", async () => {
    const model = budgeted([used, null, used], 1000);
    await ask(model);
    await ask(model);
    expect(model).toMatchObject({ costUsd: null, usage: { inputTokens: 10 } });
    await expect(ask(model)).rejects.toThrow("does not say how many tokens");
  });
});

describe("a model without one", () => {
  it("has an unknown cost from the first request on of which it is not known", async () => {
    const model = budgeted([null, used], null);
    await ask(model);
    await ask(model);
    expect(model).toMatchObject({ costUsd: null, turns: 2, usage: { outputTokens: 1 } });
  });
});
