import { type ResponseItem, wireItem } from "../model/items.js";
import type { TokenUsage } from "../model/model-client.js";
import { tokensOfBytes } from "../tools/truncation.js";

/** What a picture counts, whatever its bytes: endpoints scale it. */
const IMAGE_TOKENS = 1800;

/** Encrypted reasoning is base64 with an envelope around it. */
const REASONING_ENVELOPE_BYTES = 650;

/** How many tokens an item is, at four bytes each. */
export function itemTokens(item: ResponseItem): number {
  if (item.type === "reasoning" && typeof item.encrypted_content === "string") {
    const bytes = (item.encrypted_content.length * 3) / 4 - REASONING_ENVELOPE_BYTES;
    return tokensOfBytes(Math.max(0, bytes) + jsonBytes(item.summary));
  }
  const { shown, imageCount } = withoutPictures(item);
  return tokensOfBytes(jsonBytes(shown)) + imageCount * IMAGE_TOKENS;
}

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

function withoutPictures(item: ResponseItem): { shown: unknown; imageCount: number } {
  const parts = item.type === "message" ? item.content : "output" in item ? item.output : null;
  if (!Array.isArray(parts)) return { shown: wireItem(item), imageCount: 0 };
  const texts = parts.filter(({ type }) => type !== "input_image");
  const shown = { ...item, [item.type === "message" ? "content" : "output"]: texts };
  return { shown, imageCount: parts.length - texts.length };
}

function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}
