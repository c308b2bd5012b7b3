import { tokensOfBytes } from "../../sandbox/index.js";
import { type ResponseItem, wireItem } from "../model/items.js";

/** The estimate for a picture of any size, because endpoints scale pictures. */
const IMAGE_TOKENS = 1800;

/** Encrypted reasoning is base64 of an envelope of about this size around the text. */
const REASONING_ENVELOPE_BYTES = 650;

/** Estimates the tokens of an item at four bytes each. */
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
