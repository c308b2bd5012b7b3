import { describe, expect, it } from "vitest";
import { textMessage } from "../../../../../src/agent/model/items.js";
import { type AskOptions, ask, itemsOf, kindsOf, shell } from "../../../../support/model-stream.js";
import {
  chatDelta,
  chatDone,
  chatFinish,
  chatUsage,
  type Reply,
  turn,
} from "../../../../support/responses-server.js";

const ok = turn({ text: "ok" });

function chat(replies: readonly Reply[], options: AskOptions = {}) {
  return ask(replies, { ...options, provider: { wireApi: "chat", ...options.provider } });
}

/** What a stream of these events gives. It ends with [DONE] where it says nothing else. */
async function read(...events: (object | string)[]) {
  const { events: read, error } = await chat([{ kind: "stream", events }]);
  expect(error).toBeUndefined();
  return read;
}

async function bodyFor(options: AskOptions) {
  const { requests, error } = await chat([ok], options);
  expect(error).toBeUndefined();
  return requests[0]?.body;
}

const fragment = (call: object) => chatDelta({ tool_calls: [call] });

describe("the chat client sends", () => {
  it("the body that Chat Completions want", async () => {
    const { type, ...declared } = shell;
    expect(await bodyFor({})).toEqual({
      model: "gpt-5-test",
      messages: [
        { role: "system", content: "be brief" },
        { role: "user", content: "hello" },
      ],
      tools: [{ type, function: declared }],
      parallel_tool_calls: true,
      stream: true,
      stream_options: { include_usage: true },
    });
  });

  it("functions only, and nothing about tools where there are none", async () => {
    const tools = [{ type: "custom", name: "apply_patch" }, { type: "web_search" }, { type: "local_shell" }];
    const body = await bodyFor({ request: { tools } });
    expect(body).not.toHaveProperty("tools");
    expect(body).not.toHaveProperty("parallel_tool_calls");
  });

  it("the settings of the configuration that there are words for", async () => {
    const settings = {
      reasoningEffort: "high",
      reasoningSummary: "auto",
      verbosity: "low",
      serviceTier: "fast",
    };
    const body = await bodyFor({ settings });
    expect(body).toMatchObject({ reasoning_effort: "high", verbosity: "low", service_tier: "priority" });
    expect(body).not.toHaveProperty("reasoning");
  });

  it("the schema of the final text", async () => {
    const schema = { type: "object" };
    expect((await bodyFor({ request: { outputSchema: schema } }))?.response_format).toEqual({
      type: "json_schema",
      json_schema: { name: "codex_output_schema", strict: true, schema },
    });
  });

  it("a developer's words under that role to Azure only, of all that are not OpenAI", async () => {
    const request = { input: [textMessage("developer", "rules"), textMessage("user", "hi")] };
    const roles = async (id: string) =>
      (await bodyFor({ request, provider: { id } }))?.messages.map(({ role }) => role);
    expect(await roles("azure")).toEqual(["system", "developer", "user"]);
    expect(await roles("local")).toEqual(["system", "user"]);
  });

  it("thoughts back under the name that the endpoint has for them", async () => {
    const first = {
      kind: "stream",
      events: [chatDelta({ reasoning_content: "hm" }), chatFinish("stop"), chatDone],
    };
    const input = [
      textMessage("user", "go"),
      { type: "reasoning" as const, summary: [], content: [{ type: "reasoning_text" as const, text: "hm" }] },
      { type: "function_call" as const, call_id: "a", name: "shell", arguments: "{}" },
      { type: "function_call_output" as const, call_id: "a", output: "1" },
    ];
    const { requests } = await chat([first as Reply, ok], { request: { input }, times: 2 });
    expect(requests.map(({ body }) => body.messages[2])).toMatchObject([
      { reasoning: "hm" },
      { reasoning_content: "hm" },
    ]);
    expect(requests[1]?.body.messages[2]).not.toHaveProperty("reasoning");
  });
});

describe("the chat client reads", () => {
  it.each<[string, object, string]>([
    ["a text", { content: "hi" }, "hi"],
    [
      "a text in parts",
      {
        content: [
          { type: "text", text: "h" },
          { type: "text", text: "i" },
        ],
      },
      "hi",
    ],
    ["a refusal", { refusal: "no" }, "no"],
  ])("%s", async (_, delta, text) => {
    const events = await read(chatDelta(delta), chatDone);
    expect(events.slice(0, 2)).toEqual([
      { kind: "text-delta", text },
      {
        kind: "item",
        item: { type: "message", role: "assistant", content: [{ type: "output_text", text }] },
      },
    ]);
  });

  it.each<[string, object]>([
    ["reasoning", { reasoning: "hm" }],
    ["reasoning as an object with a text", { reasoning: { text: "hm" } }],
    ["reasoning as an object with a content", { reasoning: { content: "hm" } }],
    ["reasoning_content", { reasoning_content: "hm" }],
    ["both at once, which are the same", { reasoning: "hm", reasoning_content: "hm" }],
  ])("thoughts given as %s", async (_, delta) => {
    const events = await read(chatDelta(delta), chatDelta({ content: "so" }), chatFinish("stop"), chatDone);
    expect(events[0]).toEqual({ kind: "reasoning-delta", text: "hm" });
    expect(itemsOf(events)[0]).toEqual({
      type: "reasoning",
      summary: [],
      content: [{ type: "reasoning_text", text: "hm" }],
    });
  });

  it.each<[string, object[], [string, string, string][]]>([
    [
      "with indices, mixed",
      [
        { index: 0, id: "a", function: { name: "shell", arguments: '{"x"' } },
        { index: 1, id: "b", function: { name: "grep", arguments: "" } },
        { index: 0, function: { arguments: ":1}" } },
        { index: 1, function: { arguments: '{"y":2}' } },
      ],
      [
        ["a", "shell", '{"x":1}'],
        ["b", "grep", '{"y":2}'],
      ],
    ],
    [
      "with ids only",
      [
        { id: "a", function: { name: "shell", arguments: "{" } },
        { id: "b", function: { name: "grep", arguments: "{" } },
        { id: "a", function: { arguments: "}" } },
        { id: "b", function: { arguments: "}" } },
      ],
      [
        ["a", "shell", "{}"],
        ["b", "grep", "{}"],
      ],
    ],
    [
      "with an id at the beginning only, and no index",
      [
        { id: "a", function: { name: "shell", arguments: "{" } },
        { function: { arguments: "}" } },
        { id: "b", function: { name: "grep", arguments: "{}" } },
      ],
      [
        ["a", "shell", "{}"],
        ["b", "grep", "{}"],
      ],
    ],
    [
      "with the same index for all",
      [
        { index: 0, id: "a", function: { name: "shell", arguments: "{}" } },
        { index: 0, id: "b", function: { name: "grep", arguments: "{}" } },
      ],
      [
        ["a", "shell", "{}"],
        ["b", "grep", "{}"],
      ],
    ],
    [
      "with a new id in every delta of one call",
      [
        { index: 0, id: "a", function: { name: "shell", arguments: "{" } },
        { index: 0, id: "other", function: { arguments: "}" } },
      ],
      [["a", "shell", "{}"]],
    ],
    [
      "with the name in every delta",
      [
        { index: 0, id: "a", function: { name: "shell", arguments: "{" } },
        { index: 0, id: "a", function: { name: "shell", arguments: "}" } },
      ],
      [["a", "shell", "{}"]],
    ],
    [
      "without any id",
      [
        { index: 0, function: { name: "shell", arguments: "{}" } },
        { index: 1, id: "", function: { name: "grep", arguments: "{}" } },
      ],
      [
        ["tool-call-0", "shell", "{}"],
        ["tool-call-1", "grep", "{}"],
      ],
    ],
    ["without arguments", [{ index: 0, id: "a", function: { name: "shell" } }], [["a", "shell", "{}"]]],
    [
      "with arguments as an object",
      [{ index: 0, id: "a", function: { name: "shell", arguments: { x: [1] } } }],
      [["a", "shell", '{"x":[1]}']],
    ],
    ["that are empty, which are none", [{ index: 0, id: "a", function: { name: "", arguments: "" } }], []],
  ])("calls %s", async (_, calls, expected) => {
    const events = await read(...calls.map(fragment), chatFinish("tool_calls"), chatUsage(), chatDone);
    expect(itemsOf(events)).toEqual(
      expected.map(([call_id, name, args]) => ({ type: "function_call", call_id, name, arguments: args })),
    );
    expect(events.at(-1)?.kind).toBe("completed");
  });

  it("calls whose ids the conversation has had already, under new ones", async () => {
    const input = ["tool-call-0", "x", "x-2"].map((call_id) => ({
      type: "function_call" as const,
      call_id,
      name: "shell",
      arguments: "{}",
    }));
    const events = [
      fragment({ index: 0, function: { name: "shell", arguments: "{}" } }),
      fragment({ index: 1, id: "x", function: { name: "shell", arguments: "{}" } }),
      fragment({ index: 2, id: "x", function: { name: "shell", arguments: "{}" } }),
      chatDone,
    ];
    const { events: read } = await chat([{ kind: "stream", events }], { request: { input } });
    expect(itemsOf(read)).toMatchObject([
      { call_id: "tool-call-0-2" },
      { call_id: "x-3" },
      { call_id: "x-4" },
    ]);
  });

  it("an answer that does not stream, in one event", async () => {
    const message = {
      role: "assistant",
      content: "hi",
      tool_calls: [{ id: "a", function: { name: "shell" } }],
    };
    const events = await read({ choices: [{ message, finish_reason: "stop" }] }, chatDone);
    expect(itemsOf(events)).toMatchObject([{ type: "message" }, { type: "function_call", call_id: "a" }]);
  });

  const text = chatDelta({ content: "hi" });
  it.each<[string, (object | string)[]]>([
    ["[DONE]", [text, "data: [DONE]\n\n"]],
    ["DONE", [text, "data: DONE\n\n"]],
    ["[DONE], without a space", [text, "data:[DONE]\n\n"]],
    ["a reason and the end of the stream", [text, chatFinish("stop")]],
    ["the end of the stream", [text]],
    [
      "a whole call and the end of the stream",
      [fragment({ id: "a", function: { name: "s", arguments: "{}" } })],
    ],
  ])("a turn that is completed by %s", async (_, events) => {
    expect(kindsOf(await read(...events)).slice(-2)).toEqual(["item", "completed"]);
  });

  it("the usage beside the reason, and waits for nothing more", async () => {
    const last = { ...chatUsage(), choices: [{ index: 0, delta: {}, finish_reason: "stop" }] };
    const { events } = await chat([{ kind: "stream", events: [text, last], ending: "hang" }]);
    expect(events.at(-1)).toMatchObject({ kind: "completed", usage: { inputTokens: 100 } });
  });

  it("the last of usages that grow", async () => {
    const growing = {
      choices: [{ delta: { content: "h" } }],
      usage: { prompt_tokens: 1, completion_tokens: 1 },
    };
    const events = await read(growing, chatFinish("stop"), chatUsage(), chatDone);
    expect(events.at(-1)).toMatchObject({ kind: "completed", usage: { inputTokens: 100 } });
  });

  it("no usage from an endpoint that counts none", async () => {
    const events = await read(text, chatFinish("stop"), chatDone);
    expect(events.at(-1)).toEqual({ kind: "completed", usage: null });
  });

  it("a finished turn whose stream is cut before the usage", async () => {
    const { events } = await chat([{ kind: "stream", events: [text, chatFinish("stop")], ending: "break" }]);
    expect(kindsOf(events)).toEqual(["text-delta", "item", "completed"]);
  });
});

describe("the chat client reports a broken stream", () => {
  const half = fragment({ index: 0, id: "a", function: { name: "shell", arguments: '{"command": ["rm"' } });
  it.each<[string, Reply]>([
    ["cut in the middle of a call", { kind: "stream", events: [half], ending: "break" }],
    ["that ends in the middle of a call", { kind: "stream", events: [half] }],
    ["that ends before it has said anything", { kind: "stream", events: [chatDelta({ role: "assistant" })] }],
    [
      "cut in the middle of a text",
      { kind: "stream", events: [chatDelta({ content: "h" })], ending: "break" },
    ],
  ])("%s, and makes no call of it", async (_, reply) => {
    const { events } = await chat([reply]);
    expect(itemsOf(events)).toEqual([]);
    expect(events.at(-1)).toMatchObject({ kind: "broken", error: { code: "model.unreachable" } });
  });
});

describe("the chat client takes for damaged", () => {
  it.each<[string, object]>([
    ["calls that are no list", chatDelta({ tool_calls: { index: 0 } })],
    ["a call that is none", chatDelta({ tool_calls: ["shell"] })],
    ["arguments that are neither text nor an object", fragment({ index: 0, function: { arguments: 5 } })],
    ["a text that is none", chatDelta({ content: 5 })],
    ["choices that are no list", { choices: "hi" }],
  ])("%s", async (_, odd) => {
    const { events } = await chat([{ kind: "stream", events: [odd, chatFinish("stop"), chatDone] }]);
    expect(events).toMatchObject([{ kind: "broken", error: { code: "model.unreachable" } }]);
  });

  it.each<[string, object]>([
    ["null", { content: null, refusal: null, tool_calls: null, reasoning: null }],
    ["an empty list instead of an object", []],
  ])("nothing that is %s", async (_, delta) => {
    const call = fragment({ index: 0, id: "a", function: { name: "shell", arguments: null } });
    const events = await read(chatDelta(delta), call, { choices: null }, chatFinish("tool_calls"), chatDone);
    expect(itemsOf(events)).toMatchObject([{ name: "shell", arguments: "{}" }]);
  });

  it("nothing that follows the end of the answer", async () => {
    const events = await read(chatDelta({ content: "hi" }), chatFinish("stop"), "data: {usage\n\n");
    expect(kindsOf(events)).toEqual(["text-delta", "item", "completed"]);
  });
});

describe("the chat client gives up", () => {
  it.each<[string, object[], string, string]>([
    [
      "when the limit of output tokens is reached",
      [chatDelta({ content: "h" }), chatFinish("length")],
      "model.failed",
      "Incomplete response returned, reason: length",
    ],
    [
      "when the answer is filtered",
      [chatFinish("content_filter")],
      "model.failed",
      "Incomplete response returned, reason: content_filter",
    ],
    [
      "on a call of nothing",
      [fragment({ index: 0, id: "a", function: { arguments: "{}" } }), chatFinish("tool_calls")],
      "model.failed",
      "the endpoint sent a call without the name of a tool",
    ],
    [
      "on an error that is only a text",
      [{ error: "maximum context length" }],
      "model.context-window",
      "maximum",
    ],
  ])("%s", async (_, events, code, message) => {
    const { error } = await chat([{ kind: "stream", events: [...events, chatUsage(), chatDone] }]);
    expect(error).toMatchObject({ code, message: expect.stringContaining(message) });
  });

  it.each(["length", "content_filter"])(
    "after %s with the text so far, but without the calls",
    async (reason) => {
      const half = fragment({
        index: 0,
        id: "a",
        function: { name: "shell", arguments: '{"command":["rm"]}' },
      });
      const events = [chatDelta({ content: "I rem" }), half, chatFinish(reason), chatUsage(), chatDone];
      const { events: read, error } = await chat([{ kind: "stream", events }]);
      expect(itemsOf(read)).toMatchObject([{ type: "message", content: [{ text: "I rem" }] }]);
      expect(error).toMatchObject({ cause: { kind: "incomplete", usage: { inputTokens: 100 } } });
    },
  );

  it("on a path that is not there, without telling of the other wire", async () => {
    const { error } = await chat([{ kind: "status", status: 404 }]);
    expect(error).toMatchObject({ message: "HTTP 404 Not Found", hint: undefined });
  });
});
