import { type ResponseItem, wireItem } from "../model/items.js";
import { tokensOfBytes } from "../output/truncation.js";

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
