import { expect, it } from "vitest";
import { AgentBudget } from "../../../../src/agent/agents/budget.js";
import type { ModelClient } from "../../../../src/agent/model/model-client.js";
import type { BrigError } from "../../../../src/errors.js";

it("counts the time of agents that work side by side together", () => {
  let now = 0;
  const budget = new AgentBudget({ maxTimeMs: 100 }, () => now);
  {
    using _one = budget.work(() => undefined);
    using _two = budget.work(() => undefined);
    now = 49;
  }
  budget.check();
  {
    using _one = budget.work(() => undefined);
    now = 51;
  }
  expect(() => budget.check()).toThrow(/have used all of their 100 ms/);
});

it("stops the agents that work when the time of all of them is over", async () => {
  const budget = new AgentBudget({ maxTimeMs: 20 });
  const stopped = await new Promise<BrigError>((resolve) => {
    budget.work(resolve);
    budget.work(() => undefined);
  });
  expect(stopped.code).toBe("agents.budget");
});

it("has no limit unless one is set", () => {
  const budget = new AgentBudget({});
  using _ = budget.work(() => undefined);
  budget.check();
});

it("counts what the models of all agents use, and a model that several use only once", async () => {
  const usage = { inputTokens: 7, cachedInputTokens: 2, outputTokens: 3, reasoningOutputTokens: 1 };
  const model: ModelClient = {
    provider: "p",
    model: "m",
    maxStreamRetries: 0,
    takesOnlyFunctions: false,
    async *stream() {
      yield { kind: "completed", usage };
    },
  };
  const budget = new AgentBudget({ maxTokens: 20 });
  const child = budget.metered(model);
  const grandchild = budget.metered(child);
  const request = { instructions: "", input: [], tools: [] };
  for (const each of [child, grandchild])
    for await (const _ of each.stream(request, new AbortController().signal));
  expect(budget.usage).toEqual({
    inputTokens: 14,
    cachedInputTokens: 4,
    outputTokens: 6,
    reasoningOutputTokens: 2,
  });
  expect(() => budget.check()).toThrow(/have used all of their 20 tokens/);
});
