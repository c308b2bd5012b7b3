import type { ResponseItem } from "../../../agent/index.js";
import { isPrompt, messageText } from "../../../agent/index.js";
import { neutralise } from "../../../lib/terminal/terminal.js";
import type { Block } from "./block.js";
import { plural } from "./styled-line.js";

const SHOWN_MESSAGES = 6;

export function earlierBlocks(items: readonly ResponseItem[]): Block[] {
  const messages = items.flatMap(messageBlock);
  if (messages.length === 0) return [];
  const hidden = messages.length - SHOWN_MESSAGES;
  const text = hidden > 0 ? `resumed; the model also has ${plural(hidden, "earlier message")}` : "resumed";
  return [{ kind: "notice", tone: "quiet", text }, ...messages.slice(-SHOWN_MESSAGES)];
}

function messageBlock(item: ResponseItem): Block[] {
  if (item.type !== "message" || (item.role !== "assistant" && !isPrompt(item))) return [];
  const text = neutralise(messageText(item)).trim();
  if (text === "") return [];
  return [
    item.role === "assistant"
      ? { kind: "message", lines: text.split("\n"), isFirst: true }
      : { kind: "prompt", text },
  ];
}
