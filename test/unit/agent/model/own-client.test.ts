import OpenAI, { AzureOpenAI } from "openai";
import { describe, expect, it, vi } from "vitest";
import { createModelClient, type OwnClientOptions } from "../../../../src/agent/model/create-model-client.js";
import { textMessage } from "../../../../src/agent/model/items.js";
import type { ModelEvent } from "../../../../src/agent/model/model-client.js";
import type { WireApi } from "../../../../src/agent/model/provider.js";
import { ask, itemsOf } from "../../../support/model-stream.js";
import { type Reply, startResponsesServer, turn } from "../../../support/responses-server.js";

const ok = turn({ text: "Hello" });
const shell = { type: "function", name: "shell" };

interface Asking extends Partial<Omit<OwnClientOptions, "client">> {
  open?: (url: string) => OpenAI;
  signal?: AbortSignal;
}

/** Asks an endpoint through a client of the `openai` package, and tells what came of it and what the endpoint was sent. */
async function askThrough(replies: readonly Reply[], { open, signal, ...options }: Asking = {}) {
  await using server = await startResponsesServer(replies);
  const client = open?.(server.url) ?? new OpenAI({ baseURL: server.url, apiKey: "private-key" });
  const delays: number[] = [];
  const model = createModelClient({
    client,
    model: "gpt-5-test",
    threadId: "thread-1",
    random: () => 0.5,
    sleep: async (ms) => void delays.push(ms),
    ...options,
  });
  const events: ModelEvent[] = [];
  let error: unknown;
  const request = { instructions: "be brief", input: [textMessage("user", "hello")], tools: [shell] };
  try {
    for await (const event of model.stream(request, signal ?? new AbortController().signal))
      events.push(event);
  } catch (caught) {
    error = caught;
  }
  return { model, events, error, delays, requests: server.requests };
}

describe.each<{ wireApi: WireApi; path: string }>([
  { wireApi: "responses", path: "/v1/responses" },
  { wireApi: "chat", path: "/v1/chat/completions" },
])("a client of the openai package, over the wire $wireApi", ({ wireApi, path }) => {
  const over = (replies: readonly Reply[], asking: Asking = {}) =>
    askThrough(replies, { ...asking, provider: { wireApi, ...asking.provider } });
  const refused = (status: number, body: object, headers: Record<string, string> = {}): Reply => ({
    kind: "status",
    status,
    body,
    headers,
  });

  it("sends what brig's own would send, in the name of the client", async () => {
    const { events, requests, model } = await over([ok], {
      open: (baseURL) =>
        new OpenAI({
          baseURL,
          apiKey: "private-key",
          defaultHeaders: { "x-gateway": "blue" },
          defaultQuery: { tenant: "7" },
        }),
    });
    expect(itemsOf(events)).toMatchObject([{ content: [{ text: "Hello" }] }]);
    expect(events.at(-1)?.kind).toBe("completed");
    expect(requests[0]?.url).toBe(`${path}?tenant=7`);
    expect(requests[0]?.headers).toMatchObject({
      authorization: "Bearer private-key",
      "x-gateway": "blue",
      originator: "brig",
      session_id: "thread-1",
    });
    const own = await ask([ok], { provider: { wireApi }, request: { tools: [shell] } });
    expect(requests[0]?.body).toEqual(own.requests[0]?.body);
    expect(model).toMatchObject({ provider: "openai", maxStreamRetries: 5 });
  });

  it("is asked again as often as brig says, and not by itself as well", async () => {
    const failing = refused(500, { error: { message: "boom" } });
    const { events, requests, delays } = await over([failing], { provider: { maxRequestRetries: 2 } });
    expect(requests).toHaveLength(3);
    expect(delays).toEqual([200, 400]);
    expect(events).toMatchObject([
      { kind: "broken", error: { message: "HTTP 500 Internal Server Error: boom" } },
    ]);
  });

  it("waits as long as the endpoint asks, and drops a connection that breaks", async () => {
    const busy = refused(503, {}, { "retry-after": "3" });
    const { events, delays } = await over([busy, { kind: "hang-up" }, ok]);
    expect(delays).toEqual([3000, 400]);
    expect(events.at(-1)?.kind).toBe("completed");
  });

  it("leaves out a field that the endpoint has refused by name", async () => {
    const error = { message: "no", param: "parallel_tool_calls" };
    const { requests } = await over([refused(400, { error }), ok]);
    expect(requests.map(({ body }) => "parallel_tool_calls" in body)).toEqual([true, false]);
  });

  it.each([
    [401, {}, "model.auth"],
    [429, { code: "insufficient_quota" }, "model.quota"],
    [400, { code: "context_length_exceeded" }, "model.context-window"],
  ])("fails as brig's own does on %s %j", async (status, error, code) => {
    expect((await over([refused(status, { error })])).error).toMatchObject({ code });
  });

  it("has its key hidden in what the endpoint says, also one that it asks for each time", async () => {
    const open = (baseURL: string) => new OpenAI({ baseURL, apiKey: async () => "token-of-today" });
    const error = { message: "token-of-today has expired" };
    expect((await over([refused(401, { error })], { open })).error).toMatchObject({
      message: "HTTP 401 Unauthorized: *** has expired",
    });
  });

  it("is silent for as long as it may be", async () => {
    const { events } = await over([turn({ text: "late" }, { delayMs: 60_000 })], {
      provider: { streamIdleTimeoutMs: 500 },
    });
    expect(events).toMatchObject([
      {
        kind: "broken",
        isSilent: true,
        error: { message: expect.stringMatching(/no answer within 500 ms$/) },
      },
    ]);
  });

  it("reports at once a server on this machine that does not run", async () => {
    const { url } = await ask([ok]);
    const open = () => new OpenAI({ baseURL: url, apiKey: "private-key" });
    expect((await over([], { open })).error).toMatchObject({
      code: "model.unreachable",
      message: expect.stringContaining(`cannot reach ${url}: connect ECONNREFUSED `),
      hint: `nothing listens at ${new URL(url).host}: is it running?`,
    });
  });

  it("ends with the reason of an abort", async () => {
    const reason = new Error("ctrl-C");
    const controller = new AbortController();
    setTimeout(() => controller.abort(reason), 150);
    const { error } = await over([turn({ text: "late" }, { delayMs: 60_000 })], {
      signal: controller.signal,
    });
    expect(error).toBe(reason);
  });

  it("loses no part of a stream in silence", async () => {
    const { events } = await over([{ kind: "stream", events: ['dta: {"type":"x"}\n\n'] }]);
    expect(events).toMatchObject([{ kind: "broken", error: { code: "model.unreachable" } }]);
  });
});

it("a client for Azure sends its key and version as Azure wants them, and items with their ids", async () => {
  const open = (url: string) =>
    new AzureOpenAI({
      baseURL: url.replace("/v1", "/openai"),
      apiKey: "azure-key",
      apiVersion: "2026-01-01",
    });
  const { events, requests } = await askThrough([ok], { open, provider: { id: "azure" } });
  expect(events.at(-1)?.kind).toBe("completed");
  expect(requests[0]?.url).toBe("/openai/responses?api-version=2026-01-01");
  expect(requests[0]?.headers).toMatchObject({ "api-key": "azure-key" });
  expect(requests[0]?.body).toMatchObject({ store: true });
});

it("brig's own client sends nothing that the openai package finds in the environment or adds by itself", async () => {
  vi.stubEnv("OPENAI_CUSTOM_HEADERS", "x-elsewhere: secret");
  vi.stubEnv("OPENAI_ORG_ID", "org-elsewhere");
  vi.stubEnv("OPENAI_PROJECT_ID", "project-elsewhere");
  vi.stubEnv("OPENAI_API_KEY", "key-elsewhere");
  const { requests } = await ask([ok]);
  expect(Object.keys(requests[0]?.headers ?? {}).toSorted()).toEqual([
    "accept",
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "host",
    "originator",
    "session_id",
    "user-agent",
  ]);
  expect(JSON.stringify(requests)).not.toContain("elsewhere");
});
