import { describe, expect, it } from "vitest";
import { ChatReader } from "../../../../../src/agent/model/chat/chat-reader.js";
import type { ResponseReader } from "../../../../../src/agent/model/endpoint/endpoint-client.js";
import type { WireApi } from "../../../../../src/agent/model/provider.js";
import { ResponsesReader } from "../../../../../src/agent/model/responses/responses-reader.js";
import { callDone, chatDelta, messageDone, textDelta } from "../../../../support/responses-server.js";

const readers: Record<WireApi, () => ResponseReader> = {
  responses: () => new ResponsesReader({ keepsIds: false, refused }),
  chat: () =>
    new ChatReader(
      { instructions: "", input: [], tools: [] },
      { refused, onReasoningField: () => undefined },
    ),
};

function refused(): never {
  throw new Error("no stream here tells of a failure");
}

const megabyte = "x".repeat(1024 * 1024);

function call(id: number, args = "{}"): object {
  return chatDelta({
    tool_calls: [{ index: id, id: `call-${id}`, function: { name: "shell", arguments: args } }],
  });
}

describe("a response that never ends is refused", () => {
  it.each<[string, WireApi, object]>([
    ["text over the wire responses", "responses", textDelta(megabyte)],
    ["messages over the wire responses", "responses", messageDone(megabyte)],
    ["text over the wire chat", "chat", chatDelta({ content: megabyte })],
    ["thoughts over the wire chat", "chat", chatDelta({ reasoning: megabyte })],
    ["arguments over the wire chat", "chat", call(0, megabyte)],
  ])("after 64 MiB of %s", (_, wire, event) => {
    const reader = readers[wire]();
    const data = JSON.stringify(event);
    // An item counts with what is around its text.
    for (let count = 0; count < 63; count++) Array.from(reader.read(data));
    const over = () => [...reader.read(data), ...reader.read(data)];
    expect(over).toThrow("the endpoint sent a response of more than 64 MiB");
  });

  it.each<[WireApi, (id: number) => object]>([
    ["responses", (id) => callDone(`call-${id}`, "shell", {})],
    ["chat", (id) => call(id)],
  ])("after 1000 calls over the wire %s", (wire, nth) => {
    const reader = readers[wire]();
    for (let id = 0; id < 1000; id++) Array.from(reader.read(JSON.stringify(nth(id))));
    expect(() => [...reader.read(JSON.stringify(nth(1000)))]).toThrow(
      "the endpoint sent more than 1000 calls at once",
    );
  });
});
