import { truncateText } from "../../sandbox/index.js";
import { ADVICE_START } from "../../tools/index.js";
import { itemTokens, type MessageItem, messageText, type ResponseItem, textMessage } from "../model/items.js";

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
  "<user_action>",
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
