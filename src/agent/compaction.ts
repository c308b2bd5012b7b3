import { type MessageItem, messageText, type ResponseItem, textMessage } from "../model/items.js";
import { ADVICE_START } from "../tools/missing-programs.js";
import { truncateText } from "../tools/truncation.js";
import { itemTokens } from "./context-tokens.js";
import { normalised } from "./history.js";

/** As much of what the user said is kept word for word. */
export const KEPT_USER_TOKENS = 20_000;

export const defaultCompactPrompt = `The room for this conversation is nearly used up. Everything but the user's own messages will be replaced by your next message, so write the note from which the work can go on without anything else. Call no tools.

Say, in this order and as briefly as exactness allows:
- what the user wants, with every condition and preference that was named;
- what was decided, and why;
- what is done: files changed or made (with paths), commands that matter and how they ended, sessions that still run (with their ids);
- what was found out that would be costly to find again: names, places in files, error texts word for word;
- what remains to be done, the next step first.`;

/** Starts the message that stands for all that was left out. */
const HANDOFF_PREFIX =
  "This conversation grew too long, and what came before was replaced by the note below, which the model that did the work wrote. " +
  "Go on from it: build on what it says was done, and do not do it again.";

/** How messages start that are the user's by role only: brig wrote them. */
const writtenByBrig: readonly string[] = [
  "<environment_context>",
  "# AGENTS.md instructions",
  "<turn_aborted>",
  "<user_shell_command>",
  "Warning: apply_patch was requested via ",
  "Warning: The maximum number of unified exec processes ",
  ADVICE_START,
  HANDOFF_PREFIX,
];

/** The message that a summary is handed on in. */
export function handoffMessage(summary: string): MessageItem {
  return textMessage("user", `${HANDOFF_PREFIX}\n${summary}`);
}

/**
 * What takes the place of all items: the latest messages of the user, as many as fit, the oldest of them cut in its middle, and the
 * summary. The context, where it has to be told again at once, comes right above the last of them.
 */
export function compactedItems(
  items: readonly ResponseItem[],
  summary: string,
  { context, keptTokens }: { context: readonly ResponseItem[]; keptTokens: number },
): ResponseItem[] {
  const kept = latest(items.filter(isFromUser), keptTokens);
  return [...kept.slice(0, -1), ...context, ...kept.slice(-1), handoffMessage(summary)];
}

/** Without so many of the oldest items, and without the other halves of those that were a call or an output. */
export function withoutOldest(items: readonly ResponseItem[], count: number): ResponseItem[] {
  const left = items.slice(count);
  // An output whose call went goes with it. Calls come first: none is left whose output went.
  return normalised(left);
}

/** What a person, or a program in a person's place, said. */
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

/** Pictures are left out of a message that is too long. */
function cut(message: MessageItem, tokens: number): MessageItem {
  return textMessage("user", truncateText(messageText(message), { mode: "tokens", limit: tokens }));
}
