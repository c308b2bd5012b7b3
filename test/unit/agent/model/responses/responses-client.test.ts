import { describe, expect, it } from "vitest";
import { type ResponseItem, textMessage } from "../../../../../src/agent/model/items.js";
import type { ModelEvent } from "../../../../../src/agent/model/model-client.js";
import { ask, itemsOf, kindsOf } from "../../../../support/model-stream.js";
import {
  callDone,
  completed,
  created,
  customCallDone,
  localShellCallDone,
  messageDone,
  type Reply,
  reasoningDone,
  respond,
  textDelta,
} from "../../../../support/responses-server.js";

const ok = respond(messageDone("ok"));
const azure = { id: "azure" };

/** What a response with this item in it gives. */
async function itemFrom(event: object, provider = {}): Promise<ResponseItem | undefined> {
  return itemsOf((await ask([respond(event)], { provider })).events)[0];
}

function itemDone(item: object): object {
  return { type: "response.output_item.done", item };
}

async function bodyFor(options: Parameters<typeof ask>[1]) {
  const { requests, error } = await ask([ok], options);
  expect(error).toBeUndefined();
  return requests[0]?.body;
}

describe("the responses client reads", () => {
  it("text as it arrives, finished items and the usage", async () => {
    const { events } = await ask([
      {
        kind: "stream",
        events: [created(), textDelta("Hel"), textDelta("lo"), messageDone("Hello"), completed()],
      },
    ]);
    expect(events).toEqual([
      { kind: "text-delta", text: "Hel" },
      { kind: "text-delta", text: "lo" },
      {
        kind: "item",
        item: { type: "message", role: "assistant", content: [{ type: "output_text", text: "Hello" }] },
      },
      {
        kind: "completed",
        usage: { inputTokens: 100, cachedInputTokens: 40, outputTokens: 20, reasoningOutputTokens: 5 },
      },
    ]);
  });

  it("thoughts and their summaries as they arrive, the parts apart", async () => {
    const { events } = await ask([
      respond(
        { type: "response.reasoning_summary_part.added", summary_index: 0 },
        { type: "response.reasoning_summary_text.delta", delta: "one" },
        { type: "response.reasoning_summary_part.added", summary_index: 1 },
        { type: "response.reasoning_summary_text.delta", delta: "two" },
        { type: "response.reasoning_text.delta", delta: "raw" },
      ),
    ]);
    const thoughts = events.flatMap((event) => (event.kind === "reasoning-delta" ? [event.text] : []));
    expect(thoughts).toEqual(["one", "\n\n", "two", "raw"]);
  });

  it.each<[string, object, object]>([
    [
      "reasoning with its encrypted content",
      reasoningDone("thinking", "gAAA"),
      {
        type: "reasoning",
        summary: [{ type: "summary_text", text: "thinking" }],
        encrypted_content: "gAAA",
      },
    ],
    [
      "reasoning in plain text, of models that show it",
      itemDone({ type: "reasoning", content: [{ type: "reasoning_text", text: "hm" }] }),
      { type: "reasoning", summary: [], content: [{ type: "reasoning_text", text: "hm" }] },
    ],
    [
      "reasoning with an empty content as one without",
      itemDone({ type: "reasoning", summary: [], content: [] }),
      { type: "reasoning", summary: [] },
    ],
    [
      "of a reasoning's summary the parts that it knows",
      itemDone({
        type: "reasoning",
        summary: [{ type: "summary_sketch" }, { type: "summary_text", text: "so" }],
      }),
      { type: "reasoning", summary: [{ type: "summary_text", text: "so" }] },
    ],
    [
      "reasoning without a summary",
      itemDone({ type: "reasoning", summary: null, encrypted_content: "gAAA" }),
      { type: "reasoning", summary: [], encrypted_content: "gAAA" },
    ],
    [
      "of a message the parts that it knows, and when it is said",
      itemDone({
        type: "message",
        role: "assistant",
        phase: "commentary",
        content: [
          { type: "output_sketch", lines: [] },
          { type: "output_text", text: "I look." },
        ],
      }),
      {
        type: "message",
        role: "assistant",
        phase: "commentary",
        content: [{ type: "output_text", text: "I look." }],
      },
    ],
    [
      "a freeform call",
      customCallDone("c", "apply_patch", "*** Begin Patch"),
      { type: "custom_tool_call", call_id: "c", name: "apply_patch", input: "*** Begin Patch" },
    ],
    [
      "a call of the local shell, by its id where it has no other",
      localShellCallDone(null, { command: ["ls"] }),
      {
        type: "local_shell_call",
        call_id: "lsh_1",
        status: "completed",
        action: { type: "exec", command: ["ls"] },
      },
    ],
    [
      "an item it does not know as it is, but for its id",
      itemDone({ id: "ws_1", type: "web_search_call", status: "completed", action: { type: "search" } }),
      { type: "opaque", item: { type: "web_search_call", action: { type: "search" } } },
    ],
  ])("%s", async (_, event, item) => {
    expect(await itemFrom(event)).toEqual(item);
  });

  it("no tokens where an endpoint counts none", async () => {
    const { events } = await ask([
      { kind: "stream", events: [{ type: "response.completed", response: { id: "r" } }] },
    ]);
    expect(events).toEqual([{ kind: "completed", usage: null }]);
  });

  it("lines that end in CRLF", async () => {
    const data = JSON.stringify(messageDone("ok"));
    const { events } = await ask([
      {
        kind: "stream",
        events: [`data: ${data}\r\n\r\n`, `data: ${JSON.stringify(completed())}\r\n\r\n`],
        pieceBytes: 5,
      },
    ]);
    expect(kindsOf(events)).toEqual(["item", "completed"]);
  });

  it("what was completed before a stream broke", async () => {
    const { events } = await ask([
      { kind: "stream", events: [created(), messageDone("part")], ending: "break" },
    ]);
    expect(kindsOf(events)).toEqual(["item", "broken"]);
  });
});

describe("the end of a response", () => {
  const call = callDone("c", "shell", { command: ["rm", "-r", "build/old"], timeout_ms: 1 });
  const said = messageDone("Hello");
  /** With all items once more. */
  const completedWith = (...done: object[]) => ({
    type: "response.completed",
    response: { id: "r", status: "completed", output: done.map((event) => (event as { item: object }).item) },
  });
  const read = async (...events: object[]) =>
    (await ask([{ kind: "stream", events: [created(), ...events] }])).events;

  it("may contain again what came", async () => {
    const otherWords = callDone(
      "other-id",
      "shell",
      '{ "timeout_ms": 1, "command": ["rm","-r","build/old"] }',
    );
    for (const end of [completedWith(said, call), completedWith(messageDone(" Hello\n"), otherWords)])
      expect(kindsOf(await read(said, call, end))).toEqual(["item", "item", "completed"]);
  });

  it("may contain none of it", async () => {
    expect(kindsOf(await read(said, call, completedWith()))).toEqual(["item", "item", "completed"]);
  });

  it.each([
    ["all items", [], [reasoningDone("hm", "gAAA"), said, call]],
    ["a call", [said], [said, call]],
    [
      "one of two calls that are the same",
      [call],
      [call, { ...call, item: { ...(call as { item: object }).item, call_id: "d" } }],
    ],
    ["a message", [call], [said, call]],
  ])("is where %s may come first", async (_, came, whole) => {
    const events = await read(...came, completedWith(...whole));
    expect(events.at(-1)?.kind).toBe("completed");
    const ofTypes = (done: object[]) =>
      done.map((event) => (event as { item: { type: string } }).item.type).toSorted();
    expect(
      itemsOf(events)
        .map(({ type }) => type)
        .toSorted(),
    ).toEqual(ofTypes(whole));
  });

  it("is where the text may be missing, which then is that of its deltas", async () => {
    const events = await read(textDelta("Hel"), textDelta("lo"), completed());
    expect(itemsOf(events)).toMatchObject([{ type: "message", content: [{ text: "Hello" }] }]);
    expect(events.at(-1)?.kind).toBe("completed");
  });

  const announced = {
    type: "response.output_item.added",
    output_index: 0,
    item: { id: "fc_c", type: "function_call" },
  };
  const cutOff = { ...call, item: { ...(call as { item: object }).item, status: "incomplete" } };
  it.each([
    [
      "a call has other arguments",
      [callDone("c", "shell", { command: ["rm", "-r", "build"] }), completedWith(call)],
    ],
    ["a call is of another tool", [callDone("c", "exec", {}), completedWith(callDone("c", "shell", {}))]],
    ["a text is longer", [messageDone("Hel"), completedWith(said)]],
    ["an item cannot be read", [completedWith({ item: { type: "function_call", name: "shell" } })]],
    ["a call was announced and never came", [announced, completed()]],
    ["a call was cut off", [cutOff, completedWith(cutOff)]],
  ])("shows that a part was lost: %s", async (_, events) => {
    expect((await read(...events)).at(-1)).toMatchObject({
      kind: "broken",
      error: { code: "model.unreachable" },
    });
  });

  it("comes after each call once, however often it was sent", async () => {
    const events = await read(call, call, completedWith(call));
    expect(kindsOf(events)).toEqual(["item", "completed"]);
  });

  it("may be called response.done, and come twice", async () => {
    const done = { ...completedWith(said), type: "response.done" };
    expect(kindsOf(await read(said, done, done))).toEqual(["item", "completed"]);
  });

  it.each(["response.incomplete", "response.done", "response.completed"])(
    "may be a limit, told by %s: the text is kept, and a call that was cut off is not run",
    async (type) => {
      const usage = { input_tokens: 100, output_tokens: 20 };
      const details = { incomplete_details: { reason: "max_output_tokens" }, usage };
      const end = { type, response: { id: "r", status: "incomplete", ...details } };
      const { events, error } = await ask([
        { kind: "stream", events: [callDone("a", "shell", {}), textDelta("I rem"), cutOff, end] },
      ]);
      expect(itemsOf(events)).toMatchObject([{ call_id: "a" }, { content: [{ text: "I rem" }] }]);
      expect(error).toMatchObject({
        message: "Incomplete response returned, reason: max_output_tokens",
        cause: { kind: "incomplete", usage: { inputTokens: 100 } },
      });
    },
  );

  it("may be the error of a gateway, which knows no types", async () => {
    const { error } = await ask([
      { kind: "stream", events: [created(), { error: { code: "insufficient_quota", message: "pay" } }] },
    ]);
    expect(error).toMatchObject({ code: "model.quota", message: "pay" });
  });
});

describe("the responses client gives up", () => {
  const incomplete = { reason: "max_output_tokens" };
  it.each<[string, Reply, string | RegExp]>([
    [
      "on a response that is incomplete for good",
      {
        kind: "stream",
        events: [{ type: "response.incomplete", response: { incomplete_details: incomplete } }],
      },
      "Incomplete response returned, reason: max_output_tokens",
    ],
    [
      "on a call without its id",
      respond(itemDone({ type: "function_call", name: "shell", arguments: "{}" })),
      /call_id/,
    ],
    [
      "on an item that is nested so deeply that nobody could write it down again",
      respond(itemDone({ type: "some_call", nested: nested(300) })),
      /nested too deeply/,
    ],
    ["on an item that is none", respond({ type: "response.output_item.done" }), /incomplete item/],
    [
      "on an error event",
      { kind: "stream", events: [{ type: "error", code: "invalid_prompt", message: "no such thing" }] },
      "no such thing",
    ],
  ])("%s", async (_, reply, message) => {
    const { error } = await ask([reply]);
    expect(error).toMatchObject({ code: "model.failed", message: expect.stringMatching(message) });
  });

  it("on a path that is not there, and says what such an endpoint may want", async () => {
    const { error } = await ask([{ kind: "status", status: 404 }]);
    expect(error).toMatchObject({
      message: "HTTP 404 Not Found",
      hint: 'check base_url and model; an endpoint without the Responses API needs wire_api = "chat" in [model_providers.local]',
    });
  });
});

describe("the responses client sends", () => {
  it("the body that the Responses API wants, and keeps nothing at the endpoint", async () => {
    const body = await bodyFor({ request: { tools: [{ type: "function", name: "shell" }] } });
    expect(body).toEqual({
      model: "gpt-5-test",
      instructions: "be brief",
      input: [{ type: "message", role: "user", content: [{ type: "input_text", text: "hello" }] }],
      tools: [{ type: "function", name: "shell" }],
      tool_choice: "auto",
      parallel_tool_calls: true,
      reasoning: { summary: "auto" },
      store: false,
      stream: true,
      include: ["reasoning.encrypted_content"],
      prompt_cache_key: "thread-1",
    });
  });

  it("no instructions where there are none", async () => {
    expect(await bodyFor({ request: { instructions: "" } })).not.toHaveProperty("instructions");
  });

  it("no reasoning parameters to a model that is not known to reason", async () => {
    expect(await bodyFor({ model: "llama-3" })).toMatchObject({ reasoning: null, include: [] });
    expect(await bodyFor({ model: "llama-3", settings: { reasons: true } })).toMatchObject({
      reasoning: { summary: "auto" },
    });
    expect(
      await bodyFor({ model: "gpt-5", settings: { reasons: false, reasoningEffort: "low" } }),
    ).toMatchObject({ reasoning: null });
  });

  describe("where a summary of the reasoning is refused", () => {
    const refusal = {
      message: "Your organization must be verified to generate reasoning summaries.",
      param: "reasoning.summary",
      code: "unsupported_value",
    };
    const replies: Reply[] = [{ kind: "status", status: 400, body: { error: refusal } }, ok];

    it("none from then on, but the rest of what it had", async () => {
      const { requests, error } = await ask(replies, { settings: { reasoningEffort: "high" }, times: 2 });
      expect(error).toBeUndefined();
      expect(requests.map(({ body }) => body.reasoning)).toEqual([
        { effort: "high", summary: "auto" },
        { effort: "high" },
        { effort: "high" },
      ]);
    });

    it("nothing more to one who has asked for it", async () => {
      const { requests, error } = await ask(replies, { settings: { reasoningSummary: "detailed" } });
      expect(requests).toHaveLength(1);
      expect(error).toMatchObject({ message: expect.stringContaining("must be verified") });
    });
  });

  it("the settings of the configuration", async () => {
    const settings = {
      reasoningEffort: "high",
      reasoningSummary: "none",
      verbosity: "low",
      serviceTier: "fast",
    };
    expect(await bodyFor({ model: "llama-3", settings })).toMatchObject({
      reasoning: { effort: "high" },
      include: ["reasoning.encrypted_content"],
      text: { verbosity: "low" },
      service_tier: "priority",
    });
  });

  it("the schema of the final text, beside its verbosity", async () => {
    const schema = { type: "object", properties: { ok: { type: "boolean" } } };
    const body = await bodyFor({ request: { outputSchema: schema }, settings: { verbosity: "high" } });
    expect(body?.text).toEqual({
      verbosity: "high",
      format: { type: "json_schema", name: "codex_output_schema", strict: true, schema },
    });
  });

  it("tools that take text, and tools of the provider's, as they are declared", async () => {
    const tools = [
      {
        type: "custom",
        name: "apply_patch",
        format: { type: "grammar", syntax: "lark", definition: "start: X" },
      },
      { type: "web_search", external_web_access: true },
      { type: "local_shell" },
    ];
    expect((await bodyFor({ request: { tools } }))?.tools).toEqual(tools);
  });

  const conversation: ResponseItem[] = [
    {
      type: "message",
      role: "user",
      content: [
        { type: "input_text", text: "see" },
        { type: "input_image", image_url: "data:image/png;base64,AA" },
      ],
    },
    { id: "rs_1", type: "reasoning", summary: [], encrypted_content: "gAAA" },
    { id: "fc_1", type: "function_call", call_id: "a", name: "view_image", arguments: "{}" },
    {
      type: "function_call_output",
      call_id: "a",
      output: [{ type: "input_image", image_url: "data:image/png;base64,BB", detail: "high" }],
    },
    { id: "ctc_1", type: "custom_tool_call", call_id: "b", name: "apply_patch", input: "x" },
    { type: "custom_tool_call_output", call_id: "b", output: "Done!" },
    { type: "opaque", item: { id: "ws_1", type: "web_search_call", action: { type: "search" } } },
  ];
  const ids = (body: { input: Record<string, unknown>[] } | undefined) => body?.input.map(({ id }) => id);

  it("the conversation in the API's own words: pictures, encrypted reasoning, and no ids", async () => {
    const body = await bodyFor({ request: { input: conversation } });
    expect(ids(body)).toEqual(Array(7).fill(undefined));
    expect(body?.input.slice(0, 4)).toEqual([
      {
        type: "message",
        role: "user",
        content: [
          { type: "input_text", text: "see" },
          { type: "input_image", image_url: "data:image/png;base64,AA" },
        ],
      },
      { type: "reasoning", summary: [], encrypted_content: "gAAA" },
      { type: "function_call", call_id: "a", name: "view_image", arguments: "{}" },
      {
        type: "function_call_output",
        call_id: "a",
        output: [{ type: "input_image", image_url: "data:image/png;base64,BB", detail: "high" }],
      },
    ]);
  });

  it("everything to Azure with its ids, and lets it keep them", async () => {
    const body = await bodyFor({ provider: azure, request: { input: conversation } });
    expect(body).toMatchObject({ store: true, include: ["reasoning.encrypted_content"] });
    expect(ids(body)).toEqual([undefined, "rs_1", "fc_1", undefined, "ctc_1", undefined, "ws_1"]);
  });

  it("back to Azure what it said, with the ids that it gave", async () => {
    const { events } = await ask(
      [
        respond(
          reasoningDone("hm", "gAAA"),
          messageDone("hi"),
          itemDone({ id: "ws_1", type: "web_search_call" }),
        ),
      ],
      { provider: azure },
    );
    const body = await bodyFor({ provider: azure, request: { input: itemsOf(events as ModelEvent[]) } });
    expect(ids(body)).toEqual(["rs_1", "msg_1", "ws_1"]);
  });

  it("messages of every role, each text a part of its own", async () => {
    const input = [textMessage("developer", "rules"), textMessage("user", "one", "two")];
    expect((await bodyFor({ request: { input } }))?.input).toEqual([
      { type: "message", role: "developer", content: [{ type: "input_text", text: "rules" }] },
      {
        type: "message",
        role: "user",
        content: [
          { type: "input_text", text: "one" },
          { type: "input_text", text: "two" },
        ],
      },
    ]);
  });
});

function nested(levels: number): unknown[] {
  let value: unknown[] = [];
  for (let level = 1; level < levels; level++) value = [value];
  return value;
}
