import { describe, expect, it } from "vitest";
import { isBrigError } from "../../../src/errors.js";
import { ModelFailure } from "../../../src/model/failure.js";
import { textMessage } from "../../../src/model/items.js";
import type { ModelEvent, ModelRequest } from "../../../src/model/model-client.js";
import type { ModelProvider } from "../../../src/model/provider.js";
import { createResponsesClient, type ResponsesClientOptions } from "../../../src/model/responses-client.js";
import {
  callDone,
  completed,
  created,
  messageDone,
  type Reply,
  reasoningDone,
  respond,
  startResponsesServer,
  textDelta,
} from "../../support/responses-server.js";

const request: ModelRequest = {
  instructions: "be brief",
  input: [textMessage("user", "hello")],
  tools: [{ type: "function", name: "shell" }],
};

async function run(
  replies: readonly Reply[],
  {
    provider = {},
    signal,
    ...options
  }: Partial<Omit<ResponsesClientOptions, "provider">> & {
    provider?: Partial<ModelProvider>;
    signal?: AbortSignal;
  } = {},
) {
  await using server = await startResponsesServer(replies);
  const delays: number[] = [];
  const client = createResponsesClient({
    provider: {
      id: "local",
      baseUrl: server.url,
      apiKey: "secret-key",
      headers: {},
      query: {},
      maxRequestRetries: 4,
      maxStreamRetries: 5,
      streamIdleTimeoutMs: 5000,
      ...provider,
    },
    model: "gpt-5-test",
    threadId: "thread-1",
    random: () => 0.5,
    sleep: (ms) => {
      delays.push(ms);
      return Promise.resolve();
    },
    ...options,
  });
  const events: ModelEvent[] = [];
  let error: unknown;
  try {
    for await (const event of client.stream(request, signal ?? new AbortController().signal))
      events.push(event);
  } catch (caught) {
    error = caught;
  }
  return { events, error, delays, requests: server.requests };
}

async function closedServer() {
  await using server = await startResponsesServer([]);
  return { url: server.url };
}

function describeFailure(error: unknown) {
  if (!isBrigError(error)) return error;
  return { code: error.code, kind: error.cause instanceof ModelFailure ? error.cause.kind : undefined };
}

describe("the responses client reads", () => {
  it("text as it arrives, finished items and the usage", async () => {
    const { events, error } = await run([
      {
        kind: "stream",
        events: [created(), textDelta("Hel"), textDelta("lo"), messageDone("Hello"), completed()],
      },
    ]);
    expect(error).toBeUndefined();
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

  it("a call whose arguments come in many deltas from its finished item alone", async () => {
    const deltas = [...'{"cmd":"ls"}'].map((delta) => ({
      type: "response.function_call_arguments.delta",
      delta,
    }));
    const { events } = await run([respond(...deltas, callDone("call_1", "exec_command", { cmd: "ls" }))]);
    expect(events).toEqual([
      {
        kind: "item",
        item: { type: "function_call", call_id: "call_1", name: "exec_command", arguments: '{"cmd":"ls"}' },
      },
      expect.objectContaining({ kind: "completed" }),
    ]);
  });

  it("two calls of one turn in their order", async () => {
    const { events } = await run([respond(callDone("a", "shell", {}), callDone("b", "shell", {}))]);
    expect(events.map((event) => event.kind === "item" && event.item)).toMatchObject([
      { call_id: "a" },
      { call_id: "b" },
      false,
    ]);
  });

  it("reasoning with its encrypted content", async () => {
    const { events } = await run([respond(reasoningDone("thinking", "gAAA"))]);
    expect(events[0]).toEqual({
      kind: "item",
      item: {
        type: "reasoning",
        summary: [{ type: "summary_text", text: "thinking" }],
        encrypted_content: "gAAA",
      },
    });
  });

  it("items it does not know as they are, but for their ids", async () => {
    const item = { id: "ws_1", type: "web_search_call", status: "completed", action: { type: "search" } };
    const { events } = await run([respond({ type: "response.output_item.done", item })]);
    expect(events[0]).toEqual({
      kind: "item",
      item: { type: "opaque", item: { type: "web_search_call", action: { type: "search" } } },
    });
  });

  it("past events it does not know, comments, and events that are not JSON", async () => {
    const { events, error } = await run([
      {
        kind: "stream",
        events: [
          ": comment\n\n",
          "data: {not json}\n\n",
          "data: ping\n\n",
          "event: odd\ndata: 7\n\n",
          { type: "response.something_new", delta: 1 },
          { no: "type" },
          messageDone("ok"),
          completed(),
          "data: [DONE]\n\n",
        ],
      },
    ]);
    expect(error).toBeUndefined();
    expect(events.map(({ kind }) => kind)).toEqual(["item", "completed"]);
  });

  it.each([1, 2, 3, 7, 64])(
    "a stream that arrives in pieces of %i bytes, split characters included",
    async (pieceBytes) => {
      const events = [created(), textDelta("grüße 😀"), messageDone("grüße 😀"), completed()];
      const run1 = await run([{ kind: "stream", events, pieceBytes }]);
      expect(run1.events[0]).toEqual({ kind: "text-delta", text: "grüße 😀" });
      expect(run1.events).toHaveLength(3);
    },
  );

  it("lines that end in CRLF", async () => {
    const data = JSON.stringify(messageDone("ok"));
    const { events } = await run([
      {
        kind: "stream",
        events: [`data: ${data}\r\n\r\n`, `data: ${JSON.stringify(completed())}\r\n\r\n`],
        pieceBytes: 5,
      },
    ]);
    expect(events.map(({ kind }) => kind)).toEqual(["item", "completed"]);
  });
});

describe("the responses client sends", () => {
  it("the body the Responses API wants, and keeps nothing at the endpoint", async () => {
    const { requests } = await run([respond(messageDone("ok"))]);
    expect(requests[0]?.url).toBe("/v1/responses");
    expect(requests[0]?.body).toEqual({
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

  it("no reasoning parameters to a model that is not known to reason", async () => {
    const { requests } = await run([respond(messageDone("ok"))], { model: "llama-3" });
    expect(requests[0]?.body).toMatchObject({ reasoning: null, include: [] });
  });

  it("the settings of the configuration", async () => {
    const settings = {
      reasoningEffort: "high",
      reasoningSummary: "none",
      verbosity: "low",
      serviceTier: "fast",
    };
    const { requests } = await run([respond(messageDone("ok"))], { model: "llama-3", settings });
    expect(requests[0]?.body).toMatchObject({
      reasoning: { effort: "high" },
      include: ["reasoning.encrypted_content"],
      text: { verbosity: "low" },
      service_tier: "priority",
    });
  });

  it("key, headers and query of the provider", async () => {
    const { requests } = await run([respond(messageDone("ok"))], {
      provider: { headers: { "x-team": "blue" }, query: { "api-version": "2026" } },
    });
    expect(requests[0]?.url).toBe("/v1/responses?api-version=2026");
    expect(requests[0]?.headers).toMatchObject({
      authorization: "Bearer secret-key",
      "x-team": "blue",
      session_id: "thread-1",
      originator: "brig",
    });
  });

  it("no authorization to an endpoint that wants none", async () => {
    const { requests } = await run([respond(messageDone("ok"))], { provider: { apiKey: null } });
    expect(requests[0]?.headers.authorization).toBeUndefined();
  });
});

describe("the responses client tries again", () => {
  it("on 500 and dropped connections, with delays that double", async () => {
    const { events, delays } = await run([
      { kind: "status", status: 500 },
      { kind: "hang-up" },
      { kind: "status", status: 503 },
      respond(messageDone("ok")),
    ]);
    expect(events.at(-1)?.kind).toBe("completed");
    expect(delays).toEqual([200, 400, 800]);
  });

  it("after the time the endpoint names", async () => {
    const { delays } = await run([
      { kind: "status", status: 503, headers: { "retry-after": "3" } },
      { kind: "status", status: 503, headers: { "retry-after-ms": "70" } },
      respond(messageDone("ok")),
    ]);
    expect(delays).toEqual([3000, 70]);
  });

  it("no more often than it is allowed to", async () => {
    const { error, requests } = await run(
      [{ kind: "status", status: 500, body: { error: { message: "boom" } } }],
      {
        provider: { maxRequestRetries: 2 },
      },
    );
    expect(requests).toHaveLength(3);
    expect(describeFailure(error)).toEqual({ code: "model.failed", kind: "server" });
    expect((error as Error).message).toContain("boom");
  });

  it("never on its own after 429: it hands the wait to the turn", async () => {
    const { events, requests } = await run([
      { kind: "status", status: 429, headers: { "retry-after": "7" }, body: { error: { message: "slow" } } },
    ]);
    expect(requests).toHaveLength(1);
    expect(events).toMatchObject([{ kind: "broken", retryAfterMs: 7000 }]);
  });

  it("never on its own after 429 without a time either", async () => {
    const { events } = await run([{ kind: "status", status: 429 }]);
    expect(events).toMatchObject([{ kind: "broken", retryAfterMs: null, error: { code: "model.failed" } }]);
  });

  it("after 429 with the date the endpoint names", async () => {
    const date = new Date(Date.now() + 20_000).toUTCString();
    const { events } = await run([{ kind: "status", status: 429, headers: { "retry-after": date } }]);
    const [event] = events;
    expect(event?.kind === "broken" && event.retryAfterMs).toBeGreaterThan(17_000);
    expect(event?.kind === "broken" && event.retryAfterMs).toBeLessThanOrEqual(20_000);
  });
});

describe("the responses client reports a broken stream", () => {
  it.each([
    ["cut in the middle of an event", { cutAfterBytes: 150 }],
    ["broken after some items", { ending: "break" as const }],
  ])("%s", async (_, more) => {
    const { events } = await run([{ kind: "stream", events: [created(), messageDone("part")], ...more }]);
    const last = events.at(-1);
    expect(last?.kind === "broken" && last.error).toMatchObject({
      code: "model.unreachable",
      message: "the connection broke off",
    });
  });

  it("that ends before it is complete", async () => {
    const { events } = await run([{ kind: "stream", events: [created(), messageDone("part")] }]);
    expect(events).toMatchObject([
      { kind: "item" },
      { kind: "broken", error: { message: "stream closed before response.completed" } },
    ]);
  });

  it("that goes silent", async () => {
    const { events } = await run([{ kind: "stream", events: [created()], ending: "hang" }], {
      provider: { streamIdleTimeoutMs: 200 },
    });
    expect(events).toMatchObject([{ kind: "broken", error: { message: "idle timeout waiting for SSE" } }]);
  });

  it("that says the rate limit is reached, with the time its message names", async () => {
    const { events } = await run([
      {
        kind: "stream",
        events: [
          {
            type: "response.failed",
            response: { error: { code: "rate_limit_exceeded", message: "Please try again in 1.5s." } },
          },
        ],
      },
    ]);
    expect(events).toMatchObject([{ kind: "broken", retryAfterMs: 1500 }]);
  });
});

describe("the responses client gives up at once", () => {
  const status = (code: number, error: object): Reply => ({ kind: "status", status: code, body: { error } });
  const failed = (error: object): Reply => ({
    kind: "stream",
    events: [created(), { type: "response.failed", response: { error } }],
  });

  it.each([
    ["a wrong key", status(401, { message: "bad key" }), "model.auth", "auth"],
    ["a forbidden model", status(403, { message: "no" }), "model.auth", "auth"],
    ["an unknown model", status(404, { message: "no model" }), "model.failed", "refused"],
    ["a bad request", status(400, { message: "what?" }), "model.failed", "refused"],
    ["no quota", status(429, { message: "pay", code: "insufficient_quota" }), "model.failed", "quota"],
    ["no quota in a stream", failed({ code: "insufficient_quota", message: "pay" }), "model.failed", "quota"],
    [
      "a full context window",
      failed({ code: "context_length_exceeded", message: "long" }),
      "model.failed",
      "context-window",
    ],
    [
      "an overloaded server",
      failed({ code: "server_is_overloaded", message: "no" }),
      "model.failed",
      "refused",
    ],
    [
      "an error event",
      { kind: "stream", events: [{ type: "error", code: "invalid_prompt", message: "no" }] } satisfies Reply,
      "model.failed",
      "refused",
    ],
  ])("on %s", async (_, reply, code, kind) => {
    const { error, requests } = await run([reply]);
    expect(describeFailure(error)).toEqual({ code, kind });
    expect(requests).toHaveLength(1);
  });

  it("on a response that is incomplete for good", async () => {
    const incomplete = {
      type: "response.incomplete",
      response: { incomplete_details: { reason: "max_output_tokens" } },
    };
    const { error } = await run([{ kind: "stream", events: [incomplete] }]);
    expect(error).toMatchObject({
      code: "model.failed",
      message: "Incomplete response returned, reason: max_output_tokens",
    });
  });

  it("on a call without its id", async () => {
    const item = { type: "function_call", name: "shell", arguments: "{}" };
    const { error } = await run([respond({ type: "response.output_item.done", item })]);
    expect(error).toMatchObject({ code: "model.failed", message: expect.stringContaining("call_id") });
  });

  it("when nobody listens at the address, and names it", async () => {
    const { url } = await closedServer();
    const { error, delays } = await run([], { provider: { baseUrl: url } });
    expect(error).toMatchObject({ code: "model.unreachable" });
    expect((error as Error).message).toMatch(`cannot reach ${url}: connect ECONNREFUSED 127.0.0.1:`);
    expect(delays).toHaveLength(4);
  });
});

describe("an abort", () => {
  it("ends a request that has no answer yet with its reason", async () => {
    const { error } = await run([{ kind: "stream", events: [], delayMs: 3000 }], {
      signal: AbortSignal.timeout(150),
    });
    expect(error).toMatchObject({ name: "TimeoutError" });
  });

  it("ends a stream in the middle with its reason", async () => {
    const { error, events } = await run([{ kind: "stream", events: [textDelta("a")], ending: "hang" }], {
      signal: AbortSignal.timeout(200),
    });
    expect(events).toEqual([{ kind: "text-delta", text: "a" }]);
    expect(error).toMatchObject({ name: "TimeoutError" });
  });
});
