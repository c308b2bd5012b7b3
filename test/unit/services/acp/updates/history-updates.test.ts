import fc from "fast-check";
import { expect, it } from "vitest";
import type { ResponseItem } from "../../../../../src/agent/model/items.js";
import { historyUpdates } from "../../../../../src/services/acp/updates/history-updates.js";
import { expectExact, schema } from "../../../../support/acp-schema.js";

const message = (role: "user" | "assistant" | "developer", text: string): ResponseItem => ({
  type: "message",
  role,
  content: [{ type: role === "assistant" ? "output_text" : "input_text", text }],
});

it("shows what a person and the model have said and done, and nothing that brig told the model", () => {
  const updates = historyUpdates(
    [
      message("developer", "rules"),
      message("user", "<environment_context>\n</environment_context>"),
      {
        type: "message",
        role: "user",
        content: [
          { type: "input_text", text: "look 👩‍💻" },
          { type: "input_image", image_url: "data:image/png;base64,AAAA" },
        ],
      },
      { type: "reasoning", summary: [{ type: "summary_text", text: "hm" }] },
      { type: "function_call", name: "update_plan", arguments: "{}", call_id: "p" },
      { type: "function_call_output", call_id: "p", output: "Plan updated" },
      {
        type: "local_shell_call",
        call_id: "c",
        status: "completed",
        action: { type: "exec", command: ["ls"] },
      },
      { type: "function_call_output", call_id: "c", output: "a\x1b[2J" },
      { type: "opaque", item: { type: "ghost" } },
      message("assistant", "done"),
    ],
    "/w",
  );
  for (const update of updates) expectExact(schema.zSessionNotification, { sessionId: "s", update });
  expect(updates).toMatchObject([
    { sessionUpdate: "user_message_chunk", content: { text: "look 👩‍💻" } },
    { sessionUpdate: "user_message_chunk", content: { type: "image", mimeType: "image/png", data: "AAAA" } },
    { sessionUpdate: "agent_thought_chunk", content: { text: "hm\n\n" } },
    { sessionUpdate: "tool_call", toolCallId: "c", title: "ls" },
    { sessionUpdate: "tool_call_update", toolCallId: "c", content: [{ content: { text: "```\na\n```" } }] },
    { sessionUpdate: "agent_message_chunk", content: { text: "done\n\n" } },
  ]);
});

it("of a very long conversation shows the end, and says so", () => {
  const items = Array.from({ length: 6000 }, (_, at) => message("assistant", String(at)));
  const updates = historyUpdates(items, "/w");
  expect(updates).toHaveLength(5001);
  expect(updates[0]).toMatchObject({ content: { text: expect.stringContaining("1000 earlier items") } });
});

function calling(name: string) {
  return { type: "function_call" as const, name, arguments: "", call_id: "" };
}

it("whatever is in the file, each update is what the protocol allows", () => {
  const text = fc.string({ unit: "binary", maxLength: 50 });
  const item = fc.oneof(
    fc.record({
      type: fc.constant("function_call" as const),
      name: text,
      arguments: fc.oneof(text, fc.json()),
      call_id: text,
    }),
    fc.record({
      type: fc.constant("custom_tool_call" as const),
      name: fc.constantFrom("apply_patch", "x"),
      input: text,
      call_id: text,
    }),
    fc.record({ type: fc.constant("function_call_output" as const), call_id: text, output: text }),
    text.map((one) => message("user", one)),
    text.map((one) => message("assistant", one)),
  );
  fc.assert(
    fc.property(fc.array(item), (items) => {
      for (const update of historyUpdates(items, "/w"))
        expectExact(schema.zSessionNotification, { sessionId: "s", update });
    }),
    { examples: [[["__proto__", "toString"].map(calling)]] },
  );
});
