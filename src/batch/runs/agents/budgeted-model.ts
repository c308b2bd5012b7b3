import type { ModelClient, TokenUsage } from "../../../agent/index.js";
import { noUsage, usageTogether } from "../../../agent/index.js";
import { BrigError } from "../../../errors.js";
import type { AgentWork } from "./attempt-agent.js";

/**
 * The cost of one request in US dollars, by what it used. Null if that is unknown: there is no price, or the endpoint
 * does not count tokens, and `usage` is null.
 */
export type CostOf = (usage: TokenUsage | null) => number | null;

/** A model that answers until the budget of an attempt is used up. */
export class BudgetedModel {
  readonly client: ModelClient;
  turns = 0;
  usage: TokenUsage = noUsage;
  /** Why no further request is made; null while there may be more. */
  exhausted: string | null = null;
  /** Cost in US dollars; null once the cost of any request is unknown. */
  costUsd: number | null = 0;
  readonly #budget: AgentWork["budget"];

  constructor(model: ModelClient, { budget, costOf }: { budget: AgentWork["budget"]; costOf: CostOf }) {
    this.#budget = budget;
    const { provider, model: name, maxStreamRetries, takesOnlyFunctions } = model;
    const begin = () => this.#begin();
    const used = (usage: TokenUsage | null) => {
      if (usage !== null) this.usage = usageTogether(this.usage, usage);
      const cost = costOf(usage);
      this.costUsd = this.costUsd === null || cost === null ? null : this.costUsd + cost;
    };
    this.client = {
      ...{ provider, model: name, maxStreamRetries, takesOnlyFunctions },
      async *stream(request, signal) {
        begin();
        for await (const event of model.stream(request, signal)) {
          if (event.kind === "completed") used(event.usage);
          yield event;
        }
      },
    };
  }

  #begin(): void {
    this.exhausted = this.#whyExhausted();
    if (this.exhausted === null) this.turns++;
    else throw new BrigError(this.exhausted, { code: "agents.budget", hint: "raise the limit of the run" });
  }

  #whyExhausted(): string | null {
    const { maxTurns, maxTokens, maxCostUsd } = this.#budget;
    const tokens = this.usage.inputTokens + this.usage.outputTokens;
    if (maxTurns !== null && this.turns >= maxTurns) return `the limit of ${maxTurns} turns is reached`;
    if (maxTokens !== null && tokens >= maxTokens) return `the limit of ${maxTokens} tokens is reached`;
    if (maxCostUsd === null) return null;
    if (this.costUsd === null)
      return `the endpoint does not say how many tokens it used, so nobody knows whether the limit of ${maxCostUsd} US dollars is reached`;
    return this.costUsd >= maxCostUsd ? `the limit of ${maxCostUsd} US dollars is reached` : null;
  }
}
