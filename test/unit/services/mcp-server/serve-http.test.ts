import { once } from "node:events";
import { request } from "node:http";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { describe, expect, it } from "vitest";
import { MAX_MESSAGE_BYTES, MAX_UNANSWERED } from "../../../../src/services/mcp-server/served-client.js";
import { whileCollecting } from "../../../support/garbage.js";
import { initialize, openHttpService } from "../../../support/mcp-test-service.js";

type Service = Awaited<ReturnType<typeof openHttpService>>;

const call = (id: unknown, name: string, args: object = {}) => ({
  jsonrpc: "2.0",
  id,
  method: "tools/call",
  params: { name, arguments: args },
});

async function connectClient({ url, token }: Service, era: "legacy" | "modern") {
  const client = new Client(
    { name: "test", version: "1" },
    era === "modern" ? { versionNegotiation: { mode: { pin: "2026-07-28" } } } : {},
  );
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { authorization: `Bearer ${token}` } },
  });
  await client.connect(transport);
  return { client, transport };
}

/** What a client of 2025 sends, with the right headers unless others are given. */
async function post(
  { url, token }: Service,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Response> {
  return await fetch(url, {
    method: "POST",
    headers: {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...headers,
    },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}

/** Begins a session; its headers. */
async function begin(service: Service): Promise<{ "mcp-session-id": string }> {
  const answer = await post(service, initialize);
  await answer.text();
  return { "mcp-session-id": answer.headers.get("mcp-session-id") ?? "" };
}

describe("clients over HTTP", () => {
  it.each(["legacy", "modern"] as const)("of the %s era call tools, many at once", async (era) => {
    await using service = await openHttpService();
    expect(service.url).toMatch(/^http:\/\/127\.0\.0\.1:[0-9]+\/mcp$/);
    const { client } = await connectClient(service, era);
    const texts = Array.from({ length: 40 }, (_, at) => `${at}`);
    const answers = await Promise.all(
      texts.map((one) => client.callTool({ name: "echo", arguments: { text: one } })),
    );
    expect(answers.flatMap(({ content }) => content)).toEqual(
      texts.map((one) => ({ type: "text", text: one })),
    );
    await client.close();
    expect(service.service.events).toEqual([era === "modern" ? "open shared" : "open"]);
  });

  it("of 2025 have a session each, which DELETE ends with what runs in it", async () => {
    await using service = await openHttpService();
    const first = await connectClient(service, "legacy");
    await connectClient(service, "legacy");
    expect(service.service.events).toEqual(["open", "open"]);
    const waiting = first.client.callTool({ name: "wait", arguments: {} }).catch((error: Error) => error);
    await service.service.until("call started");
    await first.transport.terminateSession();
    await service.service.until("call aborted");
    expect(service.service.events.filter((event) => event === "close")).toHaveLength(1);
    await first.client.close();
    expect(await waiting).toBeInstanceOf(Error);
    const gone = { "mcp-session-id": `${first.transport.sessionId ?? "gone"}` };
    expect((await post(service, call(1, "echo"), gone)).status).toBe(404);
  });

  // This test and the next wait for the same two seconds.
  it.concurrent("of 2025 keep their session when a connection breaks, until they are silent for too long", async () => {
    await using service = await openHttpService({ idleMs: 2000 });
    const headers = await begin(service);
    const stop = new AbortController();
    const waiting = fetch(service.url, {
      method: "POST",
      headers: {
        ...headers,
        authorization: `Bearer ${service.token}`,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
      },
      body: JSON.stringify(call(1, "wait")),
      signal: stop.signal,
    });
    await service.service.until("call started");
    await waiting;
    stop.abort();
    await Promise.all([service.service.until("close"), service.service.until("call aborted")]);
  });

  it.concurrent("that do not read their answer are left after a while", async () => {
    await using service = await openHttpService({ unreadMs: 50, idleMs: 2000 });
    const headers = await begin(service);
    const body = JSON.stringify(call(1, "echo", { text: "x".repeat(16 * 1024 * 1024) }));
    const socket = connect(Number(new URL(service.url).port), "127.0.0.1");
    const lines = [
      "POST /mcp HTTP/1.1",
      "host: localhost",
      `authorization: Bearer ${service.token}`,
      `mcp-session-id: ${headers["mcp-session-id"]}`,
      "content-type: application/json",
      "accept: application/json, text/event-stream",
      `content-length: ${body.length}`,
    ];
    socket.pause();
    socket.on("error", () => undefined);
    socket.write(`${lines.join("\r\n")}\r\n\r\n${body}`);
    // The session is idle, and ends, only after the answer has been given up.
    await service.service.until("close");
    socket.destroy();
  });

  it("are served on if something of a silent client cannot be ended", async () => {
    await using service = await openHttpService({ idleMs: 1 });
    service.service.ends.push(() => Promise.reject(new Error("the engine is gone")));
    await begin(service);
    await service.service.until("close");
    // An unhandled rejection would fail the test run in the next turn of the event loop.
    await new Promise((resolve) => setImmediate(resolve));
    expect((await post(service, initialize)).status).toBe(200);
  });

  it("all end when the service does, even if something of one of them cannot be ended", async () => {
    await using service = await openHttpService();
    await begin(service);
    await begin(service);
    service.service.ends.push(() => Promise.reject(new Error("the engine is gone")));
    service.service.ends.push(() => new Promise((resolve) => setTimeout(resolve, 10)));
    service.stop.abort(new Error("stopped"));
    await expect(service.ended).rejects.toThrow("the engine is gone");
    expect(service.service.events).toEqual(["open", "open", "close", "close"]);
  });

  it("of 2026 end a call by going away, even after the garbage is collected", async () => {
    await using service = await openHttpService();
    const { client } = await connectClient(service, "modern");
    const stop = new AbortController();
    const waiting = client.callTool({ name: "wait", arguments: {} }, { signal: stop.signal });
    await service.service.until("call started");
    await whileCollecting(async () => {
      // Long enough for some garbage collections.
      await new Promise((resolve) => setTimeout(resolve, 100));
      stop.abort();
      await expect(waiting).rejects.toThrow();
      await service.service.until("call aborted");
    });
  });

  it("with open streams do not keep the service from ending", async () => {
    const service = await openHttpService();
    const { client } = await connectClient(service, "legacy");
    const waiting = client.callTool({ name: "wait", arguments: {} }).catch((error: Error) => error);
    await service.service.until("call started");
    const { client: modern } = await connectClient(service, "modern");
    const alsoWaiting = modern.callTool({ name: "wait", arguments: {} }).catch((error: Error) => error);
    await service.service.until("call started", 2);
    service.stop.abort(new Error("stopped"));
    await expect(service.ended).rejects.toThrow("stopped");
    expect(service.service.events.filter((event) => event === "close")).toHaveLength(2);
    expect(service.service.events.filter((event) => event === "call aborted")).toHaveLength(2);
    await Promise.all([client.close(), modern.close()]);
    expect(await waiting).toBeInstanceOf(Error);
    expect(await alsoWaiting).toBeInstanceOf(Error);
  });
});

describe("a hostile client over HTTP", () => {
  it.each<[string, Record<string, string>, number]>([
    ["without a token", { authorization: "" }, 401],
    ["with a wrong token", { authorization: "Bearer 1123456789abcdef0123456789abcdef" }, 401],
    ["with the beginning of the token", { authorization: "Bearer 01234567" }, 401],
    ["with another scheme", { authorization: "Basic 0123456789abcdef0123456789abcdef" }, 401],
    ["by a name that leads to loopback", { host: "evil.example:80" }, 403],
    ["by a name that begins like loopback", { host: "localhost.evil.example" }, 403],
    ["with a name before an @", { host: "localhost@evil.example" }, 403],
    ["from a page of another machine", { origin: "https://evil.example" }, 403],
    ["from a page without an origin", { origin: "null" }, 403],
  ])("is not let in %s", async (_, headers, status) => {
    await using service = await openHttpService();
    const { port } = new URL(service.url);
    const asked = request({
      host: "127.0.0.1",
      port,
      path: "/mcp",
      method: "POST",
      headers: { host: `127.0.0.1:${port}`, authorization: `Bearer ${service.token}`, ...headers },
    });
    const [[response]] = await Promise.all([once(asked, "response"), asked.end(JSON.stringify(initialize))]);
    expect(response.statusCode).toBe(status);
    expect(response.headers["www-authenticate"]).toBe(status === 401 ? 'Bearer realm="brig"' : undefined);
    expect(JSON.parse(await text(response))).toMatchObject({ jsonrpc: "2.0", error: { code: -32000 } });
    expect(service.service.events).toEqual([]);
  });

  it.each<[string, string, string, number]>([
    ["another path", "POST", "/", 404],
    ["a path that only begins like ours", "POST", "/mcp/x", 404],
    ["a method that is not served", "PUT", "/mcp", 405],
    ["what a browser asks before it sends a token", "OPTIONS", "/mcp", 405],
  ])("that asks for %s is told so", async (_, method, path, status) => {
    await using service = await openHttpService();
    const answer = await fetch(new URL(path, service.url), {
      method,
      headers: { authorization: `Bearer ${service.token}` },
    });
    expect(answer.status).toBe(status);
    expect(answer.headers.get("access-control-allow-origin")).toBeNull();
  });

  it.each<[string, string, number, number]>([
    ["garbage", "}{", 400, -32700],
    ["nothing", "", 400, -32700],
    ["a message nested without end", `${"[".repeat(9000)}${"]".repeat(9000)}`, 400, -32600],
    ["a request before initialize", JSON.stringify(call(1, "echo")), 400, -32000],
    [
      "half a request of 2026",
      JSON.stringify({
        ...call(1, "echo"),
        params: { name: "echo", _meta: { "io.modelcontextprotocol/protocolVersion": 1 } },
      }),
      400,
      -32602,
    ],
  ])("that posts %s is told so", async (_, body, status, code) => {
    await using service = await openHttpService();
    const answer = await post(service, body);
    expect(answer.status).toBe(status);
    expect(await answer.json()).toMatchObject({ jsonrpc: "2.0", error: { code } });
  });

  it("that posts more than is allowed is told so, whether it says beforehand how much or not", async () => {
    await using service = await openHttpService();
    const known = await post(service, "x".repeat(MAX_MESSAGE_BYTES + 1));
    expect(known.status).toBe(413);
    const piece = new Uint8Array(1024 * 1024);
    let pieces = 0;
    const unknown = await fetch(service.url, {
      method: "POST",
      headers: { authorization: `Bearer ${service.token}` },
      body: new ReadableStream({
        pull(controller) {
          pieces += 1;
          if (pieces > 100) controller.close();
          else controller.enqueue(piece);
        },
      }),
      duplex: "half",
    } as RequestInit);
    expect(unknown.status).toBe(413);
    expect(await unknown.json()).toMatchObject({
      error: { message: `a request may have at most ${MAX_MESSAGE_BYTES} bytes` },
    });
  });

  it("may begin a session only once, and not with the id of another", async () => {
    await using service = await openHttpService();
    const headers = await begin(service);
    expect((await post(service, initialize, headers)).status).toBe(400);
    expect((await post(service, initialize, { "mcp-session-id": "made-up" })).status).toBe(404);
    expect(service.service.events).toEqual(["open"]);
  });

  it("has only so many sessions", async () => {
    await using service = await openHttpService({ maxSessions: 2 });
    const headers = await begin(service);
    await begin(service);
    const refused = await post(service, initialize);
    expect(refused.status).toBe(503);
    expect(await refused.json()).toMatchObject({
      error: { message: "2 sessions are open already: end one of them first" },
    });
    await fetch(service.url, {
      method: "DELETE",
      headers: { authorization: `Bearer ${service.token}`, ...headers },
    });
    expect((await post(service, initialize)).status).toBe(200);
  });

  it("has no session if it does not accept the answer", async () => {
    await using service = await openHttpService({ maxSessions: 1 });
    expect((await post(service, initialize, { accept: "text/html" })).status).toBe(406);
    expect(service.service.events).toEqual(["open", "close"]);
    expect((await post(service, initialize)).status).toBe(200);
  });

  it("has only so many requests at once", async () => {
    await using service = await openHttpService();
    const headers = await begin(service);
    const batches = Array.from({ length: Math.ceil(MAX_UNANSWERED / 100) }, (_, batch) =>
      Array.from({ length: 100 }, (_, at) => call(`${batch}.${at}`, "wait")),
    );
    const answers = await Promise.all(batches.map((batch) => post(service, batch, headers)));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 200, 200, 200, 200, 503]);
  });

  it("that lets long requests wait for their answers is refused further ones", async () => {
    await using service = await openHttpService();
    const headers = await begin(service);
    const text = "x".repeat(30 * 1024 * 1024);
    const answers = await Promise.all(
      Array.from({ length: 5 }, (_, id) => post(service, call(id, "wait", { text }), headers)),
    );
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 200, 200, 200, 503]);
  });

  it("that sends the head of a request too slowly is left", async () => {
    await using service = await openHttpService({ headMs: 100 });
    const socket = connect(Number(new URL(service.url).port), "127.0.0.1");
    socket.write("POST /mcp HTTP/1.1\r\nhost: localhost\r\nx-");
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 408 /);
  });

  it("that sends the body of a request too slowly is left", async () => {
    await using service = await openHttpService({ headMs: 100, requestMs: 200 });
    const socket = connect(Number(new URL(service.url).port), "127.0.0.1");
    socket.write(
      `POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${service.token}\r\ncontent-length: 100\r\n\r\n{`,
    );
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 408 |^$/);
  });

  it("that sends no request in HTTP is told so", async () => {
    await using service = await openHttpService();
    const socket = connect(Number(new URL(service.url).port), "127.0.0.1");
    socket.end("\x00\x01garbage\r\n\r\n");
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 400 /);
  });
});

it("a port that is taken is a wrong use", async () => {
  await using service = await openHttpService();
  const { serveMcpHttp } = await import("../../../../src/services/mcp-server/serve-http.js");
  const second = serveMcpHttp({
    port: Number(new URL(service.url).port),
    token: service.token,
    openClient: service.service.openClient,
    signal: new AbortController().signal,
    onListening: () => undefined,
  });
  await expect(second).rejects.toMatchObject({ code: "usage.invalid" });
});
