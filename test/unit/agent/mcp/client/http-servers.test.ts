import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { inspect } from "node:util";
import { createMcpHandler } from "@modelcontextprotocol/server";
import { StdioServerTransport, serveStdio } from "@modelcontextprotocol/server/stdio";
import { describe, expect, it, onTestFinished } from "vitest";
import type { HttpServerSettings } from "../../../../../src/agent/mcp/client/server-settings.js";
import { modernServer } from "../../../../support/mcp-modern-server.js";
import {
  fixtureServer,
  httpSettings,
  launchHere,
  type ServerStreams,
  stdioSettings,
  testServers,
  toolOf,
} from "../../../../support/mcp-processes.js";

interface Exchange {
  method: string;
  url: string;
  headers: IncomingMessage["headers"];
  /** The message in the body. */
  message: { id?: number | string; method?: string; params?: { name?: string } };
  response: ServerResponse;
}

/** Serves on loopback; returns the origin. */
async function listen(answer: (exchange: Exchange) => unknown): Promise<string> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks).toString();
    const { method = "", url = "", headers } = request;
    await answer({ method, url, headers, message: body === "" ? {} : JSON.parse(body), response });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function closedPort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

function json(response: ServerResponse, body: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(200, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
}

/** A server of 2025 that does as asked when its tool is called. */
async function oldServer(call: (exchange: Exchange) => unknown, headers: Record<string, string> = {}) {
  return await listen((exchange) => {
    const { method, message, response } = exchange;
    if (method !== "POST") return response.writeHead(405).end();
    if (message.id === undefined) return response.writeHead(202).end();
    const results: Record<string, unknown> = {
      initialize: {
        protocolVersion: "2025-11-25",
        capabilities: { tools: {} },
        serverInfo: { name: "old", version: "1" },
      },
      "tools/list": { tools: [{ name: "run", inputSchema: { type: "object" } }] },
      "resources/list": { resources: [] },
    };
    const result = results[message.method ?? ""];
    if (result !== undefined) return json(response, { jsonrpc: "2.0", id: message.id, result }, headers);
    if (message.method === "tools/call") return call(exchange);
    return json(response, {
      jsonrpc: "2.0",
      id: message.id,
      error: { code: -32601, message: "no such method" },
    });
  });
}

const done = ({ message, response }: Exchange, text = "done") =>
  json(response, { jsonrpc: "2.0", id: message.id, result: { content: [{ type: "text", text }] } });

async function connected(url: string, changes: Partial<HttpServerSettings> = {}) {
  const opened = testServers({ srv: httpSettings(url, changes) });
  await opened.servers.ready();
  const call = (options = {}) => opened.servers.call(toolOf(opened.servers, "run"), {}, options);
  return { ...opened, call, error: () => opened.servers.servers[0]?.error };
}

describe("an HTTP server of MCP", () => {
  it("gets the token and the headers, and answers calls", async () => {
    const seen = new Set<string>();
    const url = await oldServer((exchange) => {
      seen.add(`${exchange.headers.authorization} ${exchange.headers["x-team"]}`);
      done(exchange);
    });
    const { call } = await connected(url, {
      bearerToken: "secret",
      headers: { "X-Team": "a", Authorization: "other" },
    });
    expect(await call()).toMatchObject({ content: [{ text: "done" }] });
    expect([...seen]).toEqual(["Bearer secret a"]);
  });

  it("that leads to another origin is not followed, and the token stays here", async () => {
    const requests: string[] = [];
    const other = await listen(({ url, response }) => {
      requests.push(url);
      response.end();
    });
    const url = await listen(({ response }) => response.writeHead(307, { location: `${other}/mcp` }).end());
    const { error } = await connected(url, { bearerToken: "secret" });
    expect(error()?.message).toContain("not followed");
    expect(requests).toEqual([]);
  });

  it("that leads to another path of its own is followed", async () => {
    const real = await oldServer((exchange) => done(exchange));
    const { port } = new URL(real);
    const url = await oldServer((exchange) =>
      exchange.url === "/new" ? done(exchange) : exchange.response.writeHead(307, { location: "/new" }).end(),
    );
    expect(port).not.toBe(new URL(url).port);
    const { call } = await connected(url);
    expect(await call()).toMatchObject({ content: [{ text: "done" }] });
  });

  it.each([
    [401, "set bearer_token_env_var"],
    [403, "it refuses this token"],
    [404, "check the path of its url"],
    [500, "check its url"],
  ])("that answers %i does not start, and the hint says what to do", async (status, hint) => {
    const url = await listen(({ response }) => response.writeHead(status).end("<html>\u001b[31mno</html>"));
    const { error } = await connected(url);
    expect(error()).toMatchObject({ code: "mcp.start-failed", hint: expect.stringContaining(hint) });
    expect(error()?.message).toContain(
      'the MCP server "srv" did not start: connecting to it failed (initialize)',
    );
    expect(error()?.message).not.toContain("\u001b");
  });

  it.each<[string, Partial<HttpServerSettings>]>([
    ["authorization", { bearerToken: "s3same\ns3cret" }],
    ["X-Key", { headers: { "X-Key": "s3same\ns3cret" } }],
    ["X Key", { headers: { "X Key": "s3cret" } }],
  ])(
    "whose header %s HTTP does not allow does not start, and the value is not shown",
    async (name, changes) => {
      const { error } = await connected(await oldServer((exchange) => done(exchange)), changes);
      expect(error()).toMatchObject({
        code: "mcp.start-failed",
        message: expect.stringContaining(`its header "${name}" has a character that HTTP does not allow`),
        hint: expect.stringContaining("check http_headers"),
      });
      expect(inspect(error(), { depth: 10 })).not.toMatch(/s3same|s3cret/);
    },
  );

  it("that is not there does not start", async () => {
    const { error } = await connected(`http://127.0.0.1:${await closedPort()}/mcp`);
    expect(error()?.message).toMatch(/connecting to it failed \(initialize\): .*ECONNREFUSED/s);
  });

  it("that is no MCP server does not start", async () => {
    const url = await listen(({ response }) =>
      response.writeHead(200, { "content-type": "text/html" }).end("<html>welcome</html>"),
    );
    const { error } = await connected(url);
    expect(error()).toMatchObject({
      code: "mcp.start-failed",
      message: expect.stringContaining("text/html"),
    });
  });

  it("that never answers does not start", async () => {
    const url = await listen(() => undefined);
    const { error } = await connected(url, { startupTimeoutMs: 300 });
    expect(error()?.message).toContain("it took longer than 300 ms");
  });

  it("that has forgotten the session gets a new one, and the call is carried out once", async () => {
    let sessions = 0;
    const calls: string[] = [];
    const url = await oldServer(
      (exchange) => {
        const session = String(exchange.headers["mcp-session-id"]);
        if (session === "first") return exchange.response.writeHead(404).end("unknown session");
        calls.push(session);
        return done(exchange);
      },
      {
        get "mcp-session-id"() {
          return sessions++ < 2 ? "first" : "second";
        },
      },
    );
    const { call, servers } = await connected(url);
    expect(await call()).toMatchObject({ content: [{ text: "done" }] });
    expect(calls).toEqual(["second"]);
    expect(servers.servers[0]?.status).toBe("ready");
  });

  it("that forgets every session is asked twice and no more", async () => {
    let calls = 0;
    const url = await oldServer(
      ({ response }) => {
        calls += 1;
        response.writeHead(404).end();
      },
      { "mcp-session-id": "one" },
    );
    const { call } = await connected(url);
    await expect(call()).rejects.toMatchObject({ code: "mcp.failed" });
    expect(calls).toBe(2);
  });
});

describe("an HTTP call", () => {
  it("to a server that never answers ends in time", async () => {
    const url = await oldServer(() => undefined);
    const { call } = await connected(url, { toolTimeoutMs: 300 });
    await expect(call()).rejects.toMatchObject({ code: "mcp.timed-out" });
  });

  it("that is cancelled rejects at once with the reason, and the server is told", async () => {
    const cancel = new AbortController();
    const told: unknown[] = [];
    const url = await listen(({ message, response }) => {
      if (message.method === "notifications/cancelled") told.push(message);
      const id = message.id;
      if (message.method === "tools/call") cancel.abort(new Error("enough"));
      if (message.method === "tools/call") return undefined;
      if (id === undefined) return response.writeHead(202).end();
      const result = {
        protocolVersion: "2025-11-25",
        capabilities: { tools: {} },
        serverInfo: { name: "old", version: "1" },
        tools: [{ name: "run", inputSchema: {} }],
      };
      if (message.method === "server/discover")
        return json(response, { jsonrpc: "2.0", id, error: { code: -32601, message: "" } });
      return json(response, { jsonrpc: "2.0", id, result });
    });
    const { call } = await connected(url);
    await expect(call({ signal: cancel.signal })).rejects.toThrow("enough");
    await expect.poll(() => told).toHaveLength(1);
  });

  it.each([
    ["a JSON answer", "application/json", '{"jsonrpc":"2.0","id":1,"result":{"x":"'],
    ["an event", "text/event-stream", 'event: message\ndata: {"jsonrpc":"2.0","id":1,"result":{"x":"'],
  ])("ends with %s that never ends", async (_, type, start) => {
    const piece = "x".repeat(256 * 1024);
    let sent = 0;
    const url = await oldServer(async ({ response }) => {
      response.writeHead(200, { "content-type": type }).write(start);
      while (!response.destroyed) {
        sent += piece.length;
        if (!response.write(piece)) await new Promise((resolve) => setTimeout(resolve, 1));
      }
    });
    const { call, servers } = await connected(url);
    await expect(call()).rejects.toMatchObject({ code: "mcp.failed" });
    expect(sent).toBeLessThan(40 * 1024 * 1024);
    expect(servers.servers[0]?.status).toBe("ready");
  });

  it("may have a stream of many events that is longer than one message may be", async () => {
    const url = await oldServer(({ message, response }) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      const log = {
        jsonrpc: "2.0",
        method: "notifications/message",
        params: { level: "info", data: "x".repeat(1024 * 1024) },
      };
      for (let count = 0; count < 20; count++) response.write(`data: ${JSON.stringify(log)}\r\n\r\n`);
      const result = { content: [{ type: "text", text: "done" }] };
      response.end(`data: ${JSON.stringify({ jsonrpc: "2.0", id: message.id, result })}\n\n`);
    });
    const { call } = await connected(url);
    expect(await call()).toMatchObject({ content: [{ text: "done" }] });
  });

  it.each([
    ["closes the stream", (response: ServerResponse) => response.end()],
    ["breaks the connection", (response: ServerResponse) => response.destroy()],
  ])("fails if the server %s before its answer, and is not sent again", async (_, end) => {
    let calls = 0;
    const url = await oldServer(({ response }) => {
      calls += 1;
      response
        .writeHead(200, { "content-type": "text/event-stream" })
        .write(": hello\n\n", () => end(response));
    });
    const { call } = await connected(url);
    await expect(call()).rejects.toMatchObject({
      code: "mcp.failed",
      message: expect.stringContaining("before its answer"),
    });
    expect(calls).toBe(1);
  });

  it("fails if the server breaks a stream that could be continued, and is gone", async () => {
    const url = await oldServer(({ response }) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write("retry: 250\nid: 1\ndata:\n\n", () => response.destroy());
    });
    const { call } = await connected(url);
    await expect(call()).rejects.toMatchObject({
      code: "mcp.failed",
      message: expect.stringContaining("before its answer"),
    });
  });

  it("rejects when the session ends, also if the server does not let go", async () => {
    let calls = 0;
    const url = await oldServer(
      () => {
        calls += 1;
      },
      { "mcp-session-id": "one" },
    );
    const { call, servers } = await connected(url);
    const waiting = call().catch((error: Error) => error.message);
    await expect.poll(() => calls).toBe(1);
    await servers.close();
    expect(await waiting).toBe('the MCP server "srv" is closed');
  });

  it("with an answer that is nested too deeply fails", async () => {
    const nested = "[".repeat(100_000) + "]".repeat(100_000);
    const url = await oldServer(({ message, response }) => {
      const result = `{"content":[],"structuredContent":${nested}}`;
      response.writeHead(200, { "content-type": "application/json" });
      response.end(`{"jsonrpc":"2.0","id":${message.id},"result":${result}}`);
    });
    const { call } = await connected(url);
    await expect(call()).rejects.toMatchObject({ message: expect.stringContaining("nested too deeply") });
  });

  it("leaves a pause before a stream of events is opened again, whatever the server wishes", async () => {
    const openedAt: number[] = [];
    const old = await oldServer((exchange) => done(exchange));
    const url = await listen(async ({ method, message, response }) => {
      if (method === "GET") {
        openedAt.push(performance.now());
        return response.writeHead(200, { "content-type": "text/event-stream" }).end("retry: 0\nid: 1\n\n");
      }
      const answer = await fetch(old, { method, body: JSON.stringify(message) });
      response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "" });
      return response.end(await answer.text());
    });
    await connected(url);
    await expect.poll(() => openedAt.length).toBeGreaterThan(3);
    // The client's pause begins after the server has counted, so a busy machine makes these times longer only.
    const pauses = openedAt.slice(1).map((at, index) => at - (openedAt[index] ?? 0));
    expect(Math.min(...pauses)).toBeGreaterThan(200);
  });

  it("fails if the server breaks the connection at once", async () => {
    const url = await oldServer(({ response }) => response.destroy());
    const { call } = await connected(url);
    await expect(call()).rejects.toMatchObject({ code: "mcp.failed" });
  });
});

async function modernOverHttp(): Promise<{ url: string; grow: () => void }> {
  let hasGrown = false;
  const handler = createMcpHandler(() => modernServer({ hasGrown }), { legacy: "reject" });
  onTestFinished(() => handler.close());
  const url = await listen(async ({ method, url: path, headers, message, response }) => {
    const cancel = new AbortController();
    response.once("close", () => cancel.abort());
    const request = new Request(`http://127.0.0.1${path}`, {
      method,
      headers: Object.entries(headers).map(([name, value]): [string, string] => [name, String(value)]),
      signal: cancel.signal,
      ...(method === "POST" ? { body: JSON.stringify(message) } : {}),
    });
    const answer = await handler.fetch(request);
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    try {
      for await (const chunk of answer.body ?? []) response.write(chunk);
    } catch {
      // The client has gone.
    }
    response.end();
  });
  const grow = () => {
    hasGrown = true;
    handler.notify.toolsChanged();
  };
  return { url, grow };
}

type Legacy = "serve" | "reject";

/** Serves over streams of this process. */
function serveModern({ stdin, stdout }: ServerStreams, legacy: Legacy): void {
  serveStdio(() => modernServer(), { legacy, transport: new StdioServerTransport(stdin, stdout) });
}

const modernOverStdio = (legacy: Legacy) =>
  testServers(
    { srv: stdioSettings("modern", []) },
    { launch: launchHere((streams) => serveModern(streams, legacy)) },
  );

/** The same server over both transports. */
const modern = [
  { name: "stdio", open: async () => modernOverStdio("serve") },
  { name: "stdio, of 2026-07-28 only", open: async () => modernOverStdio("reject") },
  {
    name: "HTTP",
    open: async () => {
      const { url } = await modernOverHttp();
      return testServers({ srv: httpSettings(url) });
    },
  },
];

describe.each(modern)("a server of 2026-07-28, over $name,", ({ open }) => {
  it("offers its tools and answers calls", async () => {
    const { servers } = await open();
    await servers.ready();
    expect(servers.servers).toMatchObject([{ status: "ready", error: null, instructions: "use it" }]);
    expect(toolOf(servers, "add")).toMatchObject({
      modelName: "srv__add",
      inputSchema: {
        type: "object",
        properties: { a: { type: "number" }, b: { type: "number" } },
        required: ["a", "b"],
      },
      annotations: { readOnly: true, destructive: null },
    });
    expect(await servers.call(toolOf(servers, "add"), { a: 1, b: 2 })).toMatchObject({
      content: [{ type: "text", text: "3" }],
    });
  });

  it("asks the user, in the result of a call", async () => {
    const { servers } = await open();
    await servers.ready();
    const deploy = toolOf(servers, "deploy");
    const asked: unknown[] = [];
    const yes = await servers.call(
      deploy,
      { where: "prod" },
      {
        elicit: async (question) => {
          asked.push(question);
          return { action: "accept", content: { isSure: true } };
        },
      },
    );
    expect(yes).toMatchObject({ content: [{ text: "deployed to prod" }] });
    expect(asked).toMatchObject([
      {
        kind: "form",
        server: "srv",
        message: "Deploy to prod?",
        fields: [{ name: "isSure", required: true }],
      },
    ]);
    expect(await servers.call(deploy, { where: "prod" })).toMatchObject({
      content: [{ text: "not deployed" }],
    });
  });

  it("that asks for ever, or for a model, fails", async () => {
    const { servers } = await open();
    await servers.ready();
    await expect(servers.call(toolOf(servers, "asks-for-ever"), {})).rejects.toMatchObject({
      code: "mcp.failed",
      message: expect.stringContaining("10 rounds"),
    });
    await expect(servers.call(toolOf(servers, "asks-for-a-model"), {})).rejects.toMatchObject({
      code: "mcp.failed",
    });
  });
});

it("a server of 2026-07-28 with a process of its own says that its tools have changed", async () => {
  const { servers } = testServers({ srv: fixtureServer("../mcp-modern-stdio.ts") });
  await servers.ready();
  await servers.call(toolOf(servers, "grow"), {});
  await expect.poll(() => servers.tools().some(({ name }) => name === "grown")).toBe(true);
});

it("a server of 2026-07-28 says over HTTP that its tools have changed", async () => {
  const { url, grow } = await modernOverHttp();
  const { servers } = testServers({ srv: httpSettings(url) });
  await servers.ready();
  const hasGrown = () => servers.tools().some(({ name }) => name === "grown");
  expect(hasGrown()).toBe(false);
  // The client subscribes after it is ready.
  const isTold = () => {
    grow();
    return hasGrown();
  };
  await expect.poll(isTold, { interval: 500 }).toBe(true);
});

/** The first time, it reads on only when the client has given up its question, and has greeted it as an older server. */
function slowAtFirst(legacy: Legacy) {
  let starts = 0;
  return launchHere((streams) => {
    starts += 1;
    if (starts > 1) return serveModern(streams, legacy);
    let received = "";
    const receive = (chunk: Buffer) => {
      received += chunk.toString();
      if (!received.includes('"initialize"')) return;
      streams.stdin.off("data", receive).unshift(Buffer.from(received));
      serveModern(streams, legacy);
      streams.stdin.resume();
    };
    streams.stdin.on("data", receive);
  });
}

it.concurrent.for<Legacy>(["serve", "reject"])(
  "a server of 2026-07-28 may take its time for its first start: %s",
  async (legacy, { expect, onTestFinished: finish }) => {
    const { servers } = testServers(
      { srv: stdioSettings("slow", [], { startupTimeoutMs: 6000 }) },
      { launch: slowAtFirst(legacy), finish },
    );
    await servers.ready();
    expect(servers.servers).toMatchObject([{ status: "ready", error: null }]);
    expect(await servers.call(toolOf(servers, "add"), { a: 1, b: 2 })).toMatchObject({
      content: [{ text: "3" }],
    });
  },
);
