import { getEventListeners } from "node:events";
import { describe, expect, it, vi } from "vitest";
import { createModelClient } from "../../../../../src/agent/model/create-model-client.js";
import type { Credentials, WireApi } from "../../../../../src/agent/model/provider.js";
import { noCredentials } from "../../../../../src/agent/model/static-credentials.js";
import { pause } from "../../../../../src/lib/time/pause.js";
import { type AskOptions, ask, describeFailure, itemsOf, kindsOf } from "../../../../support/model-stream.js";
import {
  chatEvents,
  frame,
  localProvider,
  type Reply,
  responsesEvents,
  type ScriptedTurn,
  startResponsesServer,
  turn,
} from "../../../../support/responses-server.js";

const hello: ScriptedTurn = { text: "Hello 😀" };
const ok = turn(hello);
/** Resolves never, and rejects at an abort. */
function untilAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason));
  });
}
const never: Credentials = { headers: untilAbort, renew: async () => false };

function status(code: number, body: object | string = {}, headers: Record<string, string> = {}): Reply {
  return { kind: "status", status: code, body, headers };
}

function refused(code: number, error: object): Reply {
  return status(code, { error });
}

// Most of the time, these tests wait for something to be given up: they share nothing, and wait together.
describe.concurrent.each<{ wireApi: WireApi; path: string }>([
  { wireApi: "responses", path: "/v1/responses" },
  { wireApi: "chat", path: "/v1/chat/completions" },
])("over the wire $wireApi", ({ wireApi, path }) => {
  const over = (replies: readonly Reply[], options: AskOptions = {}) =>
    ask(replies, { ...options, provider: { wireApi, ...options.provider } });

  /** A failure that an endpoint reports in the middle of a response. */
  function failing(error: object): Reply {
    const event = wireApi === "chat" ? { error } : { type: "response.failed", response: { error } };
    return { kind: "stream", events: [event] };
  }

  describe("a response", () => {
    it("is its text as it arrives, its items, and what it cost", async () => {
      const { events, error, requests } = await over([turn({ ...hello, reasoning: "hm" })]);
      expect(error).toBeUndefined();
      expect(requests[0]?.url).toBe(path);
      const deltas = events.flatMap((event) => (event.kind === "text-delta" ? [event.text] : []));
      expect(deltas.length).toBeGreaterThan(1);
      expect(deltas.join("")).toBe("Hello 😀");
      expect(itemsOf(events)).toMatchObject([
        { type: "reasoning" },
        { type: "message", role: "assistant", content: [{ type: "output_text", text: "Hello 😀" }] },
      ]);
      expect(events.at(-1)).toEqual({
        kind: "completed",
        usage: { inputTokens: 100, cachedInputTokens: 40, outputTokens: 20, reasoningOutputTokens: 5 },
      });
    });

    it("has its calls whole and in order, however many deltas they come in", async () => {
      const args = { command: ["sh", "-c", 'echo "ö" \\ 😀'], timeout_ms: 12_345 };
      const calls = [
        { id: "a", name: "shell", args },
        { id: "b", name: "shell", args: {} },
      ];
      const { events } = await over([turn({ text: "I look.", calls }, { pieceBytes: 7 })]);
      expect(itemsOf(events).slice(1)).toEqual([
        { type: "function_call", call_id: "a", name: "shell", arguments: JSON.stringify(args) },
        { type: "function_call", call_id: "b", name: "shell", arguments: "{}" },
      ]);
    });

    it("may be full of comments, pings and events that nobody knows", async () => {
      const events = (wireApi === "chat" ? chatEvents(hello) : responsesEvents(hello)).flatMap((event) => [
        ": ping\n\n",
        "data: ping\n\n",
        "data: [PING]\n\n",
        "data: 2026-04-27 01:35:43.686\n\n",
        "ping\n\n",
        "data: null\n\n",
        "event: odd\ndata: 7\n\n",
        { type: "response.something_new", delta: 1 },
        { object: "something.else" },
        event,
      ]);
      const { events: read, error } = await over([{ kind: "stream", events }]);
      expect(error).toBeUndefined();
      expect(read.at(-1)?.kind).toBe("completed");
      expect(itemsOf(read)).toHaveLength(1);
    });

    it.each(["gzip", "deflate", "br", "gzip, br"] as const)(
      "may come in the encoding %s",
      async (encoding) => {
        const { events } = await over([turn(hello, { encoding, pieceBytes: 20 })]);
        expect(itemsOf(events)).toMatchObject([{ content: [{ text: "Hello 😀" }] }]);
        expect(events.at(-1)?.kind).toBe("completed");
      },
    );

    it("is broken where its compressed bytes end early", async () => {
      const { events } = await over([turn(hello, { encoding: "gzip", cutAfterBytes: 60 })]);
      expect(events.at(-1)).toMatchObject({ kind: "broken", error: { code: "model.unreachable" } });
    });

    it("cannot come in an encoding that nobody asked for", async () => {
      const { error } = await over([turn(hello, { encoding: "zstd" })]);
      expect(error).toMatchObject({
        code: "model.failed",
        message: "the endpoint answered in the encoding zstd, which was not asked for",
      });
    });

    it.each([
      ["at its beginning", 0],
      ["byte by byte", 1],
    ])("may have a byte order mark %s", async (_, pieceBytes) => {
      const [first, ...rest] = (wireApi === "chat" ? chatEvents(hello) : responsesEvents(hello)).map(frame);
      const events = [`\uFEFF${first}`, ...rest.map((event) => `\uFEFF${event}`)];
      const { events: read } = await over([
        { kind: "stream", events, ...(pieceBytes === 0 ? {} : { pieceBytes }) },
      ]);
      expect(itemsOf(read)).toMatchObject([{ content: [{ text: "Hello 😀" }] }]);
      expect(read.at(-1)?.kind).toBe("completed");
    });

    it("leaves its connection for the next request", async () => {
      const { connections, requests } = await over([ok], { times: 4 });
      expect(requests).toHaveLength(4);
      // The second may begin before the first one's last bytes are read.
      expect(connections).toBeLessThanOrEqual(2);
    });
  });

  describe("a request", () => {
    it("carries key, headers, query and who asks", async () => {
      const { requests } = await over([ok], {
        provider: { headers: { "x-team": "blue" }, query: { "api-version": "2026" } },
        userAgent: "brig/1",
      });
      expect(requests[0]?.url).toBe(`${path}?api-version=2026`);
      expect(requests[0]?.headers).toMatchObject({
        authorization: "Bearer secret-key",
        "content-type": "application/json",
        "x-team": "blue",
        "user-agent": "brig/1",
        session_id: "thread-1",
        originator: "brig",
      });
    });

    it("has no authorization where the endpoint wants none", async () => {
      const { requests } = await over([ok], { provider: { credentials: noCredentials } });
      expect(requests[0]?.headers.authorization).toBeUndefined();
    });

    it("asks for its credentials each time", async () => {
      let asked = 0;
      const credentials: Credentials = {
        headers: async () => ({ Authorization: `Bearer token-${++asked}` }),
        renew: async () => false,
      };
      const { requests } = await over([status(500), ok], { provider: { credentials } });
      expect(requests.map(({ headers }) => headers.authorization)).toEqual([
        "Bearer token-1",
        "Bearer token-2",
      ]);
    });

    it("has the configured headers above the credentials", async () => {
      const { requests } = await over([ok], { provider: { headers: { Authorization: "Custom x" } } });
      expect(requests[0]?.headers.authorization).toBe("Custom x");
    });
  });

  describe("is asked again", () => {
    it("on 500 and dropped connections, with delays that double", async () => {
      const { events, delays } = await over([status(500), { kind: "hang-up" }, status(503), ok]);
      expect(events.at(-1)?.kind).toBe("completed");
      expect(delays).toEqual([200, 400, 800]);
    });

    it("on 408, and on an overloaded server that has not taken the request", async () => {
      const overloaded = refused(503, { code: "server_is_overloaded", message: "busy" });
      const { events, delays } = await over([status(408), overloaded, ok]);
      expect(events.at(-1)?.kind).toBe("completed");
      expect(delays).toHaveLength(2);
    });

    it.each<[Record<string, string>, number]>([
      [{ "retry-after": "3" }, 3000],
      [{ "retry-after-ms": "70" }, 70],
      [{ "retry-after": "0" }, 0],
      [{ "retry-after": "Fri, 01 Jan 2021 00:00:00 GMT" }, 0],
      [{ "retry-after": "soon" }, 200],
    ])("after the time that %j names", async (headers, delay) => {
      const { delays } = await over([status(503, {}, headers), ok]);
      expect(delays).toEqual([delay]);
    });

    it("no more often than it may be, and by the turn from then on", async () => {
      const { events, requests } = await over([refused(500, { message: "boom" })], {
        provider: { maxRequestRetries: 2 },
      });
      expect(requests).toHaveLength(3);
      expect(events).toMatchObject([
        { kind: "broken", error: { code: "model.failed", message: "HTTP 500 Internal Server Error: boom" } },
      ]);
    });

    it("never, where no retries are wanted", async () => {
      const { requests } = await over([status(500), ok], { provider: { maxRequestRetries: 0 } });
      expect(requests).toHaveLength(1);
    });

    it.each<[string, Record<string, string>, number | null]>([
      ["a time in seconds", { "retry-after": "7" }, 7000],
      ["a time in milliseconds", { "retry-after-ms": "20" }, 20],
      ["no time", {}, null],
    ])("by the turn, not by the client, after 429 with %s", async (_, headers, retryAfterMs) => {
      const { events, requests } = await over([status(429, { error: { message: "slow" } }, headers)]);
      expect(requests).toHaveLength(1);
      expect(events).toMatchObject([{ kind: "broken", retryAfterMs, error: { code: "model.rate-limit" } }]);
    });

    it("by the turn, which tells of it, where an endpoint asks for a long wait", async () => {
      const { events, requests, delays } = await over([status(503, {}, { "retry-after": "60" })]);
      expect(requests).toHaveLength(1);
      expect(delays).toEqual([]);
      expect(events).toMatchObject([
        { kind: "broken", retryAfterMs: 60_000, error: { code: "model.failed" } },
      ]);
    });

    it.each(["127.0.0.1", "localhost"])("where nobody listens at %s, which ends the turn", async (host) => {
      const { url } = await over([ok]);
      const baseUrl = url.replace("127.0.0.1", host);
      const { events, delays, error } = await over([], { provider: { baseUrl } });
      expect(delays).toHaveLength(4);
      expect(events).toEqual([]);
      expect(error).toMatchObject({
        code: "model.unreachable",
        message: expect.stringContaining(`cannot reach ${baseUrl}: connect ECONNREFUSED `),
        hint: `nothing listens at ${new URL(baseUrl).host}: is it running?`,
      });
    });

    it("by the turn where there is no answer within the idle timeout", async () => {
      const { events, requests } = await over([turn(hello, { delayMs: 60_000 })], {
        provider: { streamIdleTimeoutMs: 1000 },
      });
      expect(requests).toHaveLength(1);
      const message = expect.stringMatching(/no answer within 1000 ms$/);
      expect(events).toMatchObject([
        { kind: "broken", isSilent: true, error: { code: "model.unreachable", message } },
      ]);
    });

    it("by the turn after 429 with a date", async () => {
      const date = new Date(Date.now() + 300_000).toUTCString();
      const { events } = await over([status(429, {}, { "retry-after": date })]);
      const [event] = events;
      expect(event?.kind === "broken" && event.retryAfterMs).toBeGreaterThan(270_000);
      expect(event?.kind === "broken" && event.retryAfterMs).toBeLessThanOrEqual(300_000);
    });

    it("not at all where the endpoint asks to wait until tomorrow", async () => {
      const { error, requests } = await over([status(429, {}, { "retry-after": "86400" })]);
      expect(requests).toHaveLength(1);
      expect(error).toMatchObject({
        code: "model.rate-limit",
        hint: "the endpoint asks to wait for 24 h 00 m",
      });
    });

    it("without a field that only brig wants, once the endpoint has refused it by name", async () => {
      const field = wireApi === "chat" ? "stream_options" : "prompt_cache_key";
      const { events, requests, delays } = await over(
        [refused(400, { message: `Unknown parameter: '${field}'.`, param: field }), ok],
        { times: 2 },
      );
      expect(kindsOf(events).filter((kind) => kind === "completed")).toHaveLength(2);
      expect(requests.map(({ body }) => field in body)).toEqual([true, false, false]);
      expect(delays).toEqual([]);
    });

    it.each([
      ["FastAPI's words", { detail: [{ loc: ["body", "parallel_tool_calls"], msg: "Extra inputs" }] }],
      ["vLLM's words", { object: "error", message: "('body', 'parallel_tool_calls') extra_forbidden" }],
    ])("without a field refused in %s", async (_, body) => {
      const { requests } = await over([status(422, body), ok]);
      expect(requests.map((request) => "parallel_tool_calls" in request.body)).toEqual([true, false]);
    });
  });

  describe("after 401", () => {
    const renewing = (isRenewed: boolean) => {
      let renewals = 0;
      const credentials: Credentials = {
        headers: async () => ({ Authorization: `Bearer token-${renewals}` }),
        renew: async () => {
          renewals++;
          return isRenewed;
        },
      };
      return credentials;
    };

    it("is asked once more with other credentials", async () => {
      const { events, requests, delays } = await over([status(401), ok], {
        provider: { credentials: renewing(true) },
      });
      expect(events.at(-1)?.kind).toBe("completed");
      expect(requests.map(({ headers }) => headers.authorization)).toEqual([
        "Bearer token-0",
        "Bearer token-1",
      ]);
      expect(delays).toEqual([]);
    });

    it("is asked once more only", async () => {
      const { error, requests } = await over([status(401)], { provider: { credentials: renewing(true) } });
      expect(requests).toHaveLength(2);
      expect(describeFailure(error)).toEqual({ code: "model.auth", kind: "auth" });
    });

    it("is not asked again without other credentials", async () => {
      const { requests } = await over([status(401)], { provider: { credentials: renewing(false) } });
      expect(requests).toHaveLength(1);
    });

    it("fails as the credentials do", async () => {
      const credentials: Credentials = {
        headers: async () => ({}),
        renew: async () => {
          throw new Error("the login has ended");
        },
      };
      const { error } = await over([status(401)], { provider: { credentials } });
      expect(error).toMatchObject({ message: "the login has ended" });
    });
  });

  describe("breaks off", () => {
    it.each<[string, Reply, string, number?]>([
      ["cut in the middle of an event", turn(hello, { cutAfterBytes: 150 }), "the connection broke off"],
      [
        "gone silent",
        { kind: "stream", events: [": hello\n\n"], ending: "hang" },
        "idle timeout waiting for SSE",
        1000,
      ],
      ["over before it began", { kind: "stream", events: [] }, "stream closed before"],
    ])("when it is %s", async (_, reply, message, streamIdleTimeoutMs = 60_000) => {
      const { events } = await over([reply], { provider: { streamIdleTimeoutMs } });
      expect(events.at(-1)).toMatchObject({
        kind: "broken",
        error: { code: "model.unreachable", message: expect.stringContaining(message) },
      });
    });

    const removal = { id: "c", name: "shell", args: { command: ["rm", "-r", "build/old"] } };
    const removing = (wireApi === "chat" ? chatEvents : responsesEvents)({ calls: [removal] }).map(frame);
    const damages: [string, (event: string) => string | Uint8Array][] = [
      ["its JSON is damaged", (event) => event.replace("data: {", "data: {{")],
      ["its end is missing", (event) => `${event.slice(0, event.length / 2)}\n\n`],
      ["the name of its field is damaged", (event) => event.replace("data: {", "dta: {")],
      ["a gateway's ping is in the middle of it", (event) => event.replace('"id', '"i: ping\n\nd')],
      ["a byte of it is no UTF-8", (event) => Buffer.from(event.replace(/"(?=[^"]*$)/, '\xff"'), "latin1")],
      ["it is a list", (event) => event.replace(/^data: (.*)$/m, "data: [$1]")],
    ];
    it.each(damages)("where the event of a call cannot be read: %s", async (_, damage) => {
      // The item itself, or a few of its arguments.
      const at = wireApi === "chat" ? removing.length - 6 : removing.length - 2;
      const events = removing.map((event, index) => (index === at ? damage(event) : event));
      const { events: read, requests } = await over([{ kind: "stream", events }]);
      expect(requests).toHaveLength(1);
      expect(itemsOf(read)).toEqual([]);
      expect(read.at(-1)).toMatchObject({ kind: "broken", error: { code: "model.unreachable" } });
    });

    const comment = ": still here\n\n";
    it.each<[string, { text: string; everyMs: number }]>([
      ["comments", { text: comment, everyMs: 20 }],
      ["a flood of comments", { text: comment.repeat(5000), everyMs: 0 }],
      ["an event that never ends", { text: "data: x\n", everyMs: 20 }],
    ])("when it sends nothing but %s", async (_, thenRepeats) => {
      const reply: Reply = { kind: "stream", events: [], ending: "hang", thenRepeats };
      const { events } = await over([reply], { provider: { streamIdleTimeoutMs: 1000 } });
      expect(events).toMatchObject([
        { kind: "broken", isSilent: true, error: { message: "idle timeout waiting for SSE" } },
      ]);
    });

    it("when it says that a limit is reached, with the time its message names", async () => {
      const { events } = await over([
        failing({ code: "rate_limit_exceeded", message: "Please try again in 1.5s." }),
      ]);
      expect(events).toMatchObject([
        { kind: "broken", retryAfterMs: 1500, error: { code: "model.rate-limit" } },
      ]);
    });

    it("when it fails for a reason of its own", async () => {
      const { events } = await over([failing({ message: "CUDA error" })]);
      expect(events).toMatchObject([{ kind: "broken", error: { message: "CUDA error" } }]);
    });
  });

  describe("fails at once", () => {
    it.each<[string, Reply, string, string]>([
      ["a wrong key", refused(401, { message: "bad key" }), "model.auth", "auth"],
      ["a forbidden model", refused(403, { message: "no" }), "model.auth", "auth"],
      ["an unknown model", refused(404, { message: "no model" }), "model.failed", "refused"],
      ["a bad request", refused(400, { message: "what?" }), "model.failed", "refused"],
      ["no quota", refused(429, { message: "pay", code: "insufficient_quota" }), "model.quota", "quota"],
      ["no quota by its type", refused(429, { type: "insufficient_quota" }), "model.quota", "quota"],
      ["no money", refused(402, { message: "Insufficient Balance" }), "model.quota", "quota"],
      [
        "a full context window",
        refused(400, { message: "long", code: "context_length_exceeded" }),
        "model.context-window",
        "context-window",
      ],
      [
        "a context window that is full in words only",
        status(400, { message: "This model's maximum context length is 4096 tokens.", code: 400 }),
        "model.context-window",
        "context-window",
      ],
      [
        "a conversation that is too large for the endpoint, and says so",
        refused(413, { message: "prompt is too long" }),
        "model.context-window",
        "context-window",
      ],
      [
        "a body that is too large for a proxy",
        refused(413, { message: "Payload Too Large" }),
        "model.failed",
        "refused",
      ],
    ])("on %s", async (_, reply, code, kind) => {
      const { error, requests, delays } = await over([reply, ok]);
      expect(describeFailure(error)).toEqual({ code, kind });
      expect(requests).toHaveLength(1);
      expect(delays).toEqual([]);
    });

    it.each([
      ["insufficient_quota", "model.quota", "quota"],
      ["context_length_exceeded", "model.context-window", "context-window"],
      ["server_is_overloaded", "model.failed", "overloaded"],
      ["invalid_prompt", "model.failed", "refused"],
    ])("on %s in a stream", async (failure, code, kind) => {
      const { error } = await over([failing({ code: failure, message: "no" })]);
      expect(describeFailure(error)).toEqual({ code, kind });
    });

    it("on a spent quota, and says when it is renewed", async () => {
      const error = { type: "usage_limit_reached", message: "limit", resets_in_seconds: 5400 };
      expect((await over([refused(429, error)])).error).toMatchObject({
        code: "model.quota",
        hint: "it is renewed in 1 h 30 m",
      });
    });

    it("on a web page in place of an answer", async () => {
      const page: Reply = { kind: "stream", events: ["<html></html>"], contentType: "text/html" };
      expect((await over([page])).error).toMatchObject({
        code: "model.failed",
        message: "the endpoint answered with text/html instead of a stream of events",
      });
    });

    it("on a redirect, which would take the key elsewhere", async () => {
      const { error, requests } = await over([status(307, "", { location: "http://127.0.0.1:1/v1" })]);
      expect(requests).toHaveLength(1);
      expect(error).toMatchObject({
        code: "model.failed",
        hint: "set the provider's base_url to the address it redirects to: http://127.0.0.1:1/v1",
      });
    });

    it("when a response is not complete in the time that it may take", async () => {
      const event = wireApi === "chat" ? { choices: [] } : { type: "response.in_progress" };
      const thenRepeats = { text: `data: ${JSON.stringify(event)}\n\n`, everyMs: 20 };
      const reply: Reply = { kind: "stream", events: [], ending: "hang", thenRepeats };
      const { error, requests } = await over([reply], { provider: { responseTimeoutMs: 1000 } });
      expect(requests).toHaveLength(1);
      expect(error).toMatchObject({
        code: "model.unreachable",
        message: "the model's response was not complete within 1.0 s",
        hint: expect.stringContaining("response_timeout_ms"),
      });
    });

    it("when a refusal never ends, with what there is of it", async () => {
      const { error } = await over(
        [{ kind: "status", status: 400, body: '{"error":{"message":"half', hangs: true }],
        { provider: { streamIdleTimeoutMs: 2000 } },
      );
      expect(error).toMatchObject({ code: "model.failed", message: "HTTP 400 Bad Request" });
    });
  });

  describe("an abort ends at once", () => {
    const hanging: Reply = { kind: "stream", events: [": hello\n\n"], ending: "hang" };
    const minutes = (ms: number, signal: AbortSignal) => pause(60 * ms, signal);
    it.each<[string, Reply[], AskOptions]>([
      ["the wait for credentials", [ok], { provider: { credentials: never } }],
      [
        "the wait for other credentials",
        [status(401)],
        {
          provider: {
            credentials: { headers: async () => ({}), renew: untilAbort },
          },
        },
      ],
      ["the wait for an answer", [turn(hello, { delayMs: 60_000 })], {}],
      ["the wait for the rest of a refusal", [{ kind: "status", status: 400, hangs: true }], {}],
      ["the wait before a retry", [status(503, {}, { "retry-after": "4" })], { sleep: minutes }],
      [
        "a wait before a retry that does not listen",
        [status(503)],
        { sleep: () => new Promise(() => undefined) },
      ],
      ["the wait for the next event", [hanging], {}],
    ])("%s", async (_, replies, options) => {
      const reason = new Error("ctrl-C");
      const controller = new AbortController();
      const timer = setTimeout(() => controller.abort(reason), 150);
      const { error } = await over(replies, {
        ...options,
        provider: { streamIdleTimeoutMs: 60_000, ...options.provider },
        signal: controller.signal,
      });
      clearTimeout(timer);
      // Each of these waits is longer than a test may take, or ends otherwise than with the reason.
      expect(error).toBe(reason);
    });

    it("before anything is sent", async () => {
      const { error, requests } = await over([ok], { signal: AbortSignal.abort("no") });
      expect(error).toBe("no");
      expect(requests).toHaveLength(0);
    });
  });

  it("is forgotten by a signal that lasts longer than the request", async () => {
    const { signal } = new AbortController();
    await over([status(503), ok], { signal, times: 3 });
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });

  it("gives up a response that its reader leaves", async () => {
    await using server = await startResponsesServer([turn(hello, { ending: "hang" })]);
    const client = createModelClient({
      provider: localProvider(server.url, { wireApi }),
      model: "m",
      threadId: "t",
    });
    const request = { instructions: "", input: [], tools: [] };
    for await (const _ of client.stream(request, new AbortController().signal)) break;
    await vi.waitFor(async () => expect(await server.openConnections()).toBe(0), { timeout: 20_000 });
  });
});
