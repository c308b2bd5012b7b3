import type { z } from "zod";
import { tokensOfBytes } from "../../sandbox/index.js";
import type { knownItem } from "./item-schemas.js";

type KnownItem = z.infer<typeof knownItem>;
type ItemOf<Type extends KnownItem["type"]> = Extract<KnownItem, { type: Type }>;

export type MessageItem = ItemOf<"message">;
export type ToolCallItem = ItemOf<"function_call" | "custom_tool_call" | "local_shell_call">;
export type ToolOutputItem = ItemOf<"function_call_output" | "custom_tool_call_output">;
export type CallOutput = ToolOutputItem["output"];

/** An item of a type that brig does not interpret. It is kept and sent back unchanged. */
interface OpaqueItem {
  type: "opaque";
  item: Readonly<Record<string, unknown>>;
}

/** One item of a conversation, in the Responses API's format, without statuses, which are never sent back. */
export type ResponseItem = KnownItem | OpaqueItem;

/** The item as it is written to the session file. */
export function wireItem(item: ResponseItem): Readonly<Record<string, unknown>> {
  return item.type === "opaque" ? item.item : item;
}

/** The item as it is sent in a request. */
export function requestItem(
  item: ResponseItem,
  { withId }: { withId: boolean },
): Readonly<Record<string, unknown>> {
  const wire = wireItem(item);
  return withId ? wire : withoutId(wire);
}

/** Without what only some endpoints accept in later requests. */
export function withoutId<Item extends object>(item: Item): Item {
  if (!("id" in item)) return item;
  const { id: _id, ...kept } = item;
  return kept as Item;
}

export function isToolCall(item: ResponseItem): item is ToolCallItem {
  return (
    item.type === "function_call" || item.type === "custom_tool_call" || item.type === "local_shell_call"
  );
}

export function isToolOutput(item: ResponseItem): item is ToolOutputItem {
  return item.type === "function_call_output" || item.type === "custom_tool_call_output";
}

/** Returns the name of the called tool and its input: JSON, or plain text for a freeform tool. */
export function calledTool(item: ToolCallItem): { name: string; input: string } {
  if (item.type === "function_call") return { name: item.name, input: item.arguments };
  if (item.type === "custom_tool_call") return { name: item.name, input: item.input };
  const { command, working_directory: workdir, timeout_ms } = item.action;
  return { name: "local_shell", input: JSON.stringify({ command, workdir, timeout_ms }) };
}

export function messageText(item: MessageItem): string {
  return item.content
    .map((part) => (part.type === "refusal" ? part.refusal : part.type === "input_image" ? "" : part.text))
    .join("");
}

/** The text of an output, without its images. */
export function outputText({ output }: Pick<ToolOutputItem, "output">): string {
  if (typeof output === "string") return output;
  return output.flatMap((part) => (part.type === "input_text" ? [part.text] : [])).join("\n");
}

export function textMessage(role: "user" | "developer", ...texts: string[]): MessageItem {
  return { type: "message", role, content: texts.map((text) => ({ type: "input_text", text })) };
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
