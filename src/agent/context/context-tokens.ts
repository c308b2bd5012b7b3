import type { ResponseItem } from "../../model/items.js";
import type { TokenUsage } from "../../model/model-client.js";
import { itemTokens } from "../../session/item-tokens.js";

/**
 * How much of the model's window the conversation fills: what the endpoint counted last, and an estimate of what came since. An
 * endpoint that counts nothing leaves all to the estimate.
 */
export class TokenMeter {
  readonly #fixedTokens: number;
  #counted: number;
  #since = 0;

  /** `fixedTokens`: what every request has besides the items. */
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

  /** The endpoint counted everything so far. Some say zero for "not counted". */
  count({ inputTokens, outputTokens }: TokenUsage): void {
    if (inputTokens + outputTokens === 0) return;
    this.#counted = inputTokens + outputTokens;
    this.#since = 0;
  }

  /** Everything is another now, and nobody has counted it. */
  restart(items: readonly ResponseItem[]): void {
    this.#counted = this.#fixedTokens;
    this.#since = 0;
    for (const item of items) this.add(item);
  }
}
