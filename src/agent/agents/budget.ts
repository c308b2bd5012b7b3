import { BrigError } from "../../errors.js";
import { formatDuration } from "../../lib/time/durations.js";
import { LONGEST_TIMER_MS } from "../../lib/time/pause.js";
import { type ModelClient, noUsage, type TokenUsage, usageTogether } from "../model/model-client.js";
import { observedModel } from "../model/observed-model.js";

/** Limits the tokens and the working time of all agents of a session together. */
export class AgentBudget {
  readonly #maxTokens: number | null;
  readonly #maxTimeMs: number | null;
  readonly #now: () => number;
  /** For each agent that is working, a function that ends its turn. */
  readonly #working = new Set<(error: BrigError) => void>();
  /** An agent may use the model of another one, whose use is counted already. */
  readonly #metered = new WeakSet<ModelClient>();
  #usage: TokenUsage = noUsage;
  #timeMs = 0;
  #countedAt = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(
    limits: { maxTokens?: number | undefined; maxTimeMs?: number | undefined },
    now: () => number = () => performance.now(),
  ) {
    this.#maxTokens = limits.maxTokens ?? null;
    this.#maxTimeMs = limits.maxTimeMs ?? null;
    this.#now = now;
  }

  /** Tokens used by the models of all agents. */
  get usage(): TokenUsage {
    return this.#usage;
  }

  /** Error: `agents.budget` if nothing is left. */
  check(): void {
    const error = this.#exhausted();
    if (error !== null) throw error;
  }

  /**
   * Counts the tokens that the model uses. A request fails if the budget is already used up when it begins.
   */
  metered(model: ModelClient): ModelClient {
    if (this.#metered.has(model)) return model;
    const metered = observedModel(model, {
      onRequest: () => this.check(),
      onUsage: (usage) => {
        this.#usage = usageTogether(this.#usage, usage);
      },
    });
    this.#metered.add(metered);
    return metered;
  }

  /**
   * Counts the time of an agent as working time until disposed of. Calls `stop` if the agents' time runs out
   * before that.
   */
  work(stop: (error: BrigError) => void): Disposable {
    this.#count();
    this.#working.add(stop);
    this.#schedule();
    return {
      [Symbol.dispose]: () => {
        this.#count();
        this.#working.delete(stop);
        this.#schedule();
      },
    };
  }

  #count(): void {
    const now = this.#now();
    this.#timeMs += (now - this.#countedAt) * this.#working.size;
    this.#countedAt = now;
  }

  /** If several agents are working, the time that is left is divided by their number. */
  #schedule(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#maxTimeMs === null || this.#working.size === 0) return;
    const leftMs = Math.max(0, this.#maxTimeMs - this.#timeMs) / this.#working.size;
    this.#timer = setTimeout(() => this.#expire(), Math.min(Math.ceil(leftMs), LONGEST_TIMER_MS));
  }

  #expire(): void {
    this.#count();
    const error = this.#exhausted();
    if (error === null) {
      this.#schedule();
      return;
    }
    for (const stop of [...this.#working]) stop(error);
  }

  #exhausted(): BrigError | null {
    const { inputTokens, outputTokens } = this.#usage;
    if (this.#maxTokens !== null && inputTokens + outputTokens >= this.#maxTokens)
      return spent(`${this.#maxTokens} tokens`, "agents.max_tokens");
    if (this.#maxTimeMs !== null && this.#timeMs >= this.#maxTimeMs)
      return spent(formatDuration(this.#maxTimeMs), "agents.max_time_ms");
    return null;
  }
}

function spent(amount: string, key: string): BrigError {
  return new BrigError(`the agents of this session have used all of their ${amount}`, {
    code: "agents.budget",
    hint: `${key} in config.toml says how much they may use`,
  });
}
