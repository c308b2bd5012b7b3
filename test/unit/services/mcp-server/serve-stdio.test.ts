import { once } from "node:events";
import { PassThrough, Writable } from "node:stream";
import { Client } from "@modelcontextprotocol/client";
import { describe, expect, it } from "vitest";
import { serveMcpStdio } from "../../../../src/services/mcp-server/serve-stdio.js";
import { MAX_MESSAGE_BYTES, MAX_UNANSWERED } from "../../../../src/services/mcp-server/served-client.js";
import { initialize, openStdioService, TestService } from "../../../support/mcp-test-service.js";
import { StreamClientTransport } from "../../../support/stream-client-transport.js";

const call = (id: unknown, name: string, args: object = {}) => ({
  jsonrpc: "2.0",
  id,
  method: "tools/call",
  params: { name, arguments: args },
});

describe("a client over streams", () => {
  it.each(["legacy", "modern"] as const)("of the %s era calls a tool", async (era) => {
    const { input, output, ended, service } = openStdioService();
    const client = new Client(
      { name: "test", version: "1" },
      era === "modern" ? { versionNegotiation: { mode: { pin: "2026-07-28" } } } : {},
    );
    await client.connect(new StreamClientTransport(output, input));
    expect(await client.callTool({ name: "echo", arguments: { text: "hello" } })).toMatchObject({
      content: [{ type: "text", text: "hello" }],
    });
    await client.close();
    await ended;
    expect(service.events).toEqual(["open", "close"]);
  });

  it("gets the answers to what it has sent before its input ends", async () => {
    const { input, send, next, ended } = openStdioService();
    send(initialize);
    send(call(1, "echo", { text: "last" }));
    input.end();
    expect(await next()).toMatchObject({ id: "init" });
    expect(await next()).toMatchObject({ id: 1, result: { content: [{ text: "last" }] } });
    await ended;
  });

  it("that is gone in mid-call ends the call, and the service", async () => {
    const { input, send, next, ended, service } = openStdioService();
    send(initialize);
    await next();
    send(call(1, "wait"));
    await service.until("call started");
    input.destroy();
    await ended;
    expect(service.events).toEqual(["open", "call started", "call aborted", "close"]);
  });

  it("that cancels a call ends it alone", async () => {
    const { send, next, service, stop, ended } = openStdioService();
    send(initialize);
    await next();
    send(call(1, "wait"));
    await service.until("call started");
    send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } });
    await service.until("call aborted");
    send(call(1, "echo", { text: "the id is free again" }));
    expect(await next()).toMatchObject({ id: 1, result: { content: [{ text: "the id is free again" }] } });
    stop.abort(new Error("stopped"));
    await expect(ended).rejects.toThrow("stopped");
    expect(service.events.at(-1)).toBe("close");
  });
});

describe("a hostile client over streams", () => {
  it.each<[string, string, number, unknown]>([
    ["garbage", "}{", -32700, null],
    ["half a message", '{"jsonrpc":"2.0","id":1,', -32700, null],
    ["JSON that is no message", "[1,2]", -32600, null],
    ["a request without a version", '{"id":7,"method":"ping"}', -32600, 7],
    ["a request with a wrong id", '{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600, null],
    [
      "a message nested without end",
      `{"jsonrpc":"2.0","id":3,"method":"ping","params":${"[".repeat(9000)}${"]".repeat(9000)}}`,
      -32600,
      3,
    ],
  ])("that sends %s is told so, and served on", async (_, text, code, id) => {
    const { input, next, send } = openStdioService();
    input.write(`${text}\n`);
    expect(await next()).toMatchObject({ jsonrpc: "2.0", id, error: { code } });
    send(initialize);
    expect(await next()).toMatchObject({ id: "init", result: { serverInfo: { name: "test" } } });
  });

  it("that sends an endless message is told so and left, and the message is not kept", async () => {
    const { input, next, ended, service } = openStdioService();
    const piece = Buffer.alloc(1024 * 1024, "x");
    let written = 0;
    while (!input.destroyed && written < 100) {
      written += 1;
      if (!input.write(piece)) await Promise.race([once(input, "drain"), ended]);
      if (written * piece.length === MAX_MESSAGE_BYTES + piece.length) input.write("\n");
    }
    expect(await next()).toMatchObject({
      id: null,
      error: { code: -32600, message: `a message may have at most ${MAX_MESSAGE_BYTES} bytes` },
    });
    await ended;
    expect(service.events).toEqual(["open", "close"]);
  });

  it("that sends an unknown method is told so", async () => {
    const { send, next } = openStdioService();
    send(initialize);
    await next();
    send({ jsonrpc: "2.0", id: 1, method: "no/such" });
    expect(await next()).toMatchObject({ id: 1, error: { code: -32601 } });
  });

  it("may send initialize only once", async () => {
    const { send, next } = openStdioService();
    send(initialize);
    await next();
    send({ ...initialize, id: 2 });
    expect(await next()).toMatchObject({
      id: 2,
      error: { code: -32600, message: "initialize may be sent only once per connection" },
    });
  });

  it("that uses an id twice at once, or has too many requests, is refused", async () => {
    const { send, next, service, stop, ended } = openStdioService();
    send(initialize);
    await next();
    for (let id = 0; id < MAX_UNANSWERED; id++) send(call(id, "wait"));
    await service.until("call started", MAX_UNANSWERED);
    send(call(0, "echo"));
    expect(await next()).toMatchObject({
      id: 0,
      error: { message: "a request with this id waits for its answer already" },
    });
    send(call(-1, "echo"));
    expect(await next()).toMatchObject({
      id: -1,
      error: { message: `${MAX_UNANSWERED} requests wait for their answers already` },
    });
    stop.abort(new Error("stopped"));
    await expect(ended).rejects.toThrow("stopped");
  });

  it("that lets long requests wait for their answers is refused further ones", async () => {
    const { send, next, service, stop, ended } = openStdioService();
    send(initialize);
    await next();
    const text = "x".repeat(30 * 1024 * 1024);
    for (let id = 0; id < 5; id++) send(call(id, "wait", { text }));
    expect(await next()).toMatchObject({
      id: 4,
      error: { message: expect.stringMatching(/^requests of more than [0-9]+ bytes would wait/) },
    });
    await service.until("call started", 4);
    send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 0 } });
    send(call(5, "echo", { text: "there is room again" }));
    expect(await next()).toMatchObject({ id: 5, result: { content: [{ text: "there is room again" }] } });
    stop.abort(new Error("stopped"));
    await expect(ended).rejects.toThrow("stopped");
  });

  it("that does not read is not read from either", async () => {
    const service = new TestService();
    const input = new PassThrough({ highWaterMark: 1000 });
    let isReading = false;
    let resume: (() => void) | undefined;
    const output = new Writable({
      highWaterMark: 1000,
      write: (_chunk, _encoding, done) => {
        if (isReading) done();
        else resume = done;
      },
    });
    const stop = new AbortController();
    const ended = serveMcpStdio({ input, output, openClient: service.openClient, signal: stop.signal });
    const text = "x".repeat(1000);
    input.write(`${JSON.stringify(initialize)}\n`);
    let sent = 0;
    const fill = async () => {
      while (input.write(`${JSON.stringify(call(++sent, "echo", { text }))}\n`) || !isReading)
        await new Promise((resolve) => setImmediate(resolve));
    };
    void fill();
    // Waits until everything on its way has arrived. What waits for this client must then be bounded.
    while (!output.writableNeedDrain) await new Promise((resolve) => setImmediate(resolve));
    for (let turn = 0; turn < 200; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(output.writableLength).toBeLessThan(100_000);
    isReading = true;
    resume?.();
    stop.abort(new Error("stopped"));
    await expect(ended).rejects.toThrow("stopped");
  });

  it("whose output breaks is gone", async () => {
    const { send, output, ended, service } = openStdioService();
    send(initialize);
    output.destroy(new Error("EPIPE"));
    await ended;
    expect(service.events).toEqual(["open", "close"]);
  });
});
