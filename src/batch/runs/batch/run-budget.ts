import type { AttemptOutcome } from "../results/attempt-outcome.js";
import type { BatchStop } from "./batch-events.js";

/** Limits of a whole run. Undefined for none. */
export interface RunLimits {
  maxCostUsd?: number | undefined;
  /** Input and output. */
  maxTokens?: number | undefined;
  maxTimeMs?: number | undefined;
}

/** Adds up what the attempts of a run have used, those of earlier runs in the same folder included. */
export class RunBudget {
  readonly #limits: RunLimits;
  #costUsd = 0;
  #tokens = 0;

  constructor(limits: RunLimits, earlier: Iterable<AttemptOutcome>) {
    this.#limits = limits;
    for (const { usage } of earlier) this.add(usage);
  }

  add({ costUsd, inputTokens, outputTokens }: AttemptOutcome["usage"]): void {
    this.#costUsd += costUsd ?? 0;
    this.#tokens += inputTokens + outputTokens;
  }

  /** The limit that has been reached; null for none. */
  exceeded(): (BatchStop & { kind: "limit" }) | null {
    const { maxCostUsd, maxTokens } = this.#limits;
    if (maxCostUsd !== undefined && this.#costUsd >= maxCostUsd) return { kind: "limit", limit: "cost" };
    if (maxTokens !== undefined && this.#tokens >= maxTokens) return { kind: "limit", limit: "tokens" };
    return null;
  }
}
