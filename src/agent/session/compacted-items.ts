import { tokensOfBytes, truncateText } from "../../sandbox/index.js";
import { ADVICE_START } from "../../tools/index.js";
import { type MessageItem, messageText, type ResponseItem, textMessage, wireItem } from "../model/items.js";

/** Size of the user's messages that are kept word for word. */
export const KEPT_USER_TOKENS = 20_000;

/** Starts the message with the summary. */
const HANDOFF_PREFIX =
  "This conversation grew too long, and what came before was replaced by the note below, which the model that did the work wrote. " +
  "Go on from it: build on what it says was done, and do not do it again.";

/** Beginnings of messages that have the role of the user but were written by brig. */
const writtenByBrig: readonly string[] = [
  "<environment_context>",
  "# AGENTS.md instructions",
  "<turn_aborted>",
  "<subagent_notification>",
  "<user_shell_command>",
  "<workspace_state>",
  "Warning: apply_patch was requested via ",
  "Warning: The maximum number of unified exec processes ",
  ADVICE_START,
  HANDOFF_PREFIX,
];

export function handoffMessage(summary: string): MessageItem {
  return textMessage("user", `${HANDOFF_PREFIX}\n${summary}`);
}

/**
 * Returns the items that replace a conversation: the user's latest messages that fit, the oldest of them cut
 * in the middle, and the summary. The context messages precede the last message of the user.
 */
export function compactedItems(
  items: readonly ResponseItem[],
  summary: string,
  { context, keptTokens }: { context: readonly ResponseItem[]; keptTokens: number },
): ResponseItem[] {
  const kept = latest(items.filter(isFromUser), keptTokens);
  return [...kept.slice(0, -1), ...context, ...kept.slice(-1), handoffMessage(summary)];
}

/** Whether a person, or a program in place of a person, wrote the item. */
export function isFromUser(item: ResponseItem): item is MessageItem {
  if (item.type !== "message" || item.role !== "user") return false;
  const text = messageText(item).trimStart();
  return !writtenByBrig.some((start) => text.startsWith(start));
}

function latest(messages: readonly MessageItem[], maxTokens: number): MessageItem[] {
  const kept: MessageItem[] = [];
  let left = maxTokens;
  for (const message of messages.toReversed()) {
    const tokens = itemTokens(message);
    kept.unshift(tokens <= left ? message : cut(message, left));
    left -= tokens;
    if (left <= 0) break;
  }
  return kept;
}

/** A message that is cut loses its pictures. */
function cut(message: MessageItem, tokens: number): MessageItem {
  return textMessage("user", truncateText(messageText(message), { mode: "tokens", limit: tokens }));
}

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
