import { neutralise } from "../../../lib/terminal/terminal.js";
import { messageText, type ResponseItem } from "../../../model/items.js";
import { isPrompt } from "../../../session/read/session-reader.js";
import type { Block } from "./block.js";
import { plural } from "./styled-line.js";

/** Messages of a resumed session that are shown again. */
const SHOWN_MESSAGES = 6;

/** The end of what was said before, and how much there is of it. */
export function earlierBlocks(items: readonly ResponseItem[]): Block[] {
  const messages = items.flatMap(messageBlock);
  if (messages.length === 0) return [];
  const hidden = messages.length - SHOWN_MESSAGES;
  const text =
    hidden > 0 ? `resumed, with ${plural(hidden, "earlier message")} that the model knows` : "resumed";
  return [{ kind: "notice", tone: "quiet", text }, ...messages.slice(-SHOWN_MESSAGES)];
}

function messageBlock(item: ResponseItem): Block[] {
  if (item.type !== "message" || (item.role !== "assistant" && !isPrompt(item))) return [];
  const text = neutralise(messageText(item)).trim();
  if (text === "") return [];
  return [
    item.role === "assistant"
      ? { kind: "said", lines: text.split("\n"), isFirst: true }
      : { kind: "asked", text },
  ];
}
