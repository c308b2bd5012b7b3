import type { SessionUpdate } from "@agentclientprotocol/sdk";
import type { MessageItem, ResponseItem } from "../../../agent/index.js";
import {
  calledTool,
  isPrompt,
  isToolCall,
  isToolOutput,
  messageText,
  outputText,
} from "../../../agent/index.js";
import { outputContent } from "./event-updates.js";
import { longText, proseText } from "./shown-text.js";
import { type CalledTool, toolCallOf } from "./tool-call.js";

/** Limit for what is sent of one message of an earlier conversation. */
const MESSAGE_CHARS = 1024 * 1024;
/** Number of items that are sent. Of a longer conversation these are the last ones. */
const MAX_ITEMS = 5000;
const MAX_IMAGE_CHARS = 4 * 1024 * 1024;

/** The updates that show an earlier conversation, much like those that were sent while it took place. */
export function historyUpdates(items: readonly ResponseItem[], cwd: string): SessionUpdate[] {
  const shown = items.slice(-MAX_ITEMS);
  const left = items.length - shown.length;
  const note = `${left} earlier items of this conversation are not shown; the model has them\n\n`;
  const updates = shown.flatMap((item) => itemUpdates(item, cwd));
  const calls = new Set(updates.map((one) => (one.sessionUpdate === "tool_call" ? one.toolCallId : null)));
  return [
    ...(left === 0 ? [] : [textChunk("agent_thought_chunk", note)]),
    ...updates.filter((one) => one.sessionUpdate !== "tool_call_update" || calls.has(one.toolCallId)),
  ];
}

function itemUpdates(item: ResponseItem, cwd: string): SessionUpdate[] {
  if (item.type === "message") return messageUpdates(item);
  if (item.type === "reasoning") {
    const text = item.summary.map((part) => part.text).join("\n");
    return text.trim() === "" ? [] : [textChunk("agent_thought_chunk", `${longText(text)}\n\n`)];
  }
  if (isToolCall(item)) return callUpdates({ callId: item.call_id, ...calledTool(item) }, cwd);
  if (!isToolOutput(item)) return [];
  const content = [outputContent(outputText(item))];
  return [{ sessionUpdate: "tool_call_update", toolCallId: item.call_id, status: "completed", content }];
}

function messageUpdates(item: MessageItem): SessionUpdate[] {
  const isFromModel = item.role === "assistant";
  if (!isFromModel && !isPrompt(item)) return [];
  const kind = isFromModel ? "agent_message_chunk" : "user_message_chunk";
  const text = proseText(messageText(item), MESSAGE_CHARS);
  const images = isFromModel ? [] : item.content.flatMap((part) => imageUpdate(part));
  return [...(text === "" ? [] : [textChunk(kind, isFromModel ? `${text}\n\n` : text)]), ...images];
}

function imageUpdate(part: MessageItem["content"][number]): SessionUpdate[] {
  if (part.type !== "input_image" || part.image_url.length > MAX_IMAGE_CHARS) return [];
  const [, mimeType, data] = /^data:([^;,]+);base64,(.*)$/s.exec(part.image_url) ?? [];
  if (mimeType === undefined || data === undefined) return [];
  return [{ sessionUpdate: "user_message_chunk", content: { type: "image", mimeType, data } }];
}

function callUpdates(call: CalledTool, cwd: string): SessionUpdate[] {
  if (call.name === "update_plan") return [];
  return [{ sessionUpdate: "tool_call", ...toolCallOf(call, cwd) }];
}

function textChunk(
  sessionUpdate: "agent_message_chunk" | "agent_thought_chunk" | "user_message_chunk",
  text: string,
): SessionUpdate {
  return { sessionUpdate, content: { type: "text", text } };
}
