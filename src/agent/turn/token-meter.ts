import type { ResponseItem } from "../model/items.js";
import type { TokenUsage } from "../model/model-client.js";
import { itemTokens } from "../session/compacted-items.js";

/**
 * Measures the conversation: what the endpoint counted last, plus an estimate of what was added since. If the
 * endpoint never counts, all of it is estimated.
 */
export class TokenMeter {
  readonly #fixedTokens: number;
  #counted: number;
  #since = 0;

  /** `fixedTokens`: what every request contains besides the items. */
  constructor(fixedTokens: number) {
    this.#fixedTokens = fixedTokens;
    this.#counted = fixedTokens;
  }

  get total(): number {
    return this.#counted + this.#since;
  }

  add(item: ResponseItem): void {
    this.#since += itemTokens(item);
  }

  /** Takes the endpoint's count of everything so far. Some endpoints send zero if they do not count. */
  count({ inputTokens, outputTokens }: TokenUsage): void {
    if (inputTokens + outputTokens === 0) return;
    this.#counted = inputTokens + outputTokens;
    this.#since = 0;
  }

  /** Starts again with other items, which the endpoint has not counted. */
  restart(items: readonly ResponseItem[]): void {
    this.#counted = this.#fixedTokens;
    this.#since = 0;
    for (const item of items) this.add(item);
  }
}
