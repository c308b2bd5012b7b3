import fc from "fast-check";
import { isToolCall, isToolOutput, type ResponseItem, textMessage } from "../../src/agent/model/items.js";

export function callOf(id: string): ResponseItem {
  return { type: "function_call", call_id: id, name: "shell", arguments: "{}" };
}

export function outputOf(id: string, output = "ok"): ResponseItem {
  return { type: "function_call_output", call_id: id, output };
}

export function saidByAssistant(text: string): ResponseItem {
  return { type: "message", role: "assistant", content: [{ type: "output_text", text }] };
}

const ids = fc.constantFrom("a", "b", "c", "d");
const texts = fc.string({ maxLength: 60 });

const anyItem: fc.Arbitrary<ResponseItem> = fc.oneof(
  ids.map(callOf),
  ids.map((id): ResponseItem => ({ type: "custom_tool_call", call_id: id, name: "apply_patch", input: "" })),
  fc.tuple(ids, texts).map(([id, text]) => outputOf(id, text)),
  texts.map((text) => textMessage("user", text)),
  texts.map((text) => textMessage("developer", text)),
  texts.map(saidByAssistant),
  texts.map((text): ResponseItem => ({ type: "reasoning", summary: [], encrypted_content: text })),
  fc.constant<ResponseItem>({ type: "opaque", item: { type: "web_search_call" } }),
);

/** Items in any order: outputs without calls, calls without outputs, ids used twice. */
export const anyHistory = fc.array(anyItem, { maxLength: 40 });

/** What an endpoint would refuse: the ids of calls that get no output, or of outputs for which no call waits. */
export function unpaired(items: readonly ResponseItem[]): string[] {
  const waiting: string[] = [];
  const stray: string[] = [];
  for (const item of items) {
    if (isToolCall(item)) waiting.push(item.call_id);
    if (!isToolOutput(item)) continue;
    const at = waiting.indexOf(item.call_id);
    if (at < 0) stray.push(item.call_id);
    else waiting.splice(at, 1);
  }
  return [...waiting, ...stray];
}
