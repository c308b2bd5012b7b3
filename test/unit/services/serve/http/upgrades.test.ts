import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, describe, expect, it } from "vitest";
import { type ClientSocket, MAX_FRAME_BYTES } from "../../../../../src/services/serve/http/client-socket.js";
import { MemoryBudget } from "../../../../../src/services/serve/http/memory-budget.js";
import type { Calls } from "../../../../../src/services/serve/http/response.js";
import { openSocket } from "../../../../support/web-socket-client.js";
import { type ServedCalls, serveCalls } from "../http-fixture.js";

const path = "/v1/sandboxes/a/processes/b/attach";
const authorization = "Bearer token";
const raw: Socket[] = [];

afterEach(() => {
  for (const one of raw.splice(0)) one.destroy();
});

/** A service whose sockets the test serves. */
async function served(
  serve: (socket: ClientSocket) => Promise<void>,
  options: Parameters<typeof serveCalls>[1] = {},
): Promise<ServedCalls> {
  const calls = {
    attachProcess: async () => ({ kind: "socket", serve }),
    health: async () => ({ kind: "json", value: { fine: true } }),
    exec: async ({ body }: { body: { argv: string[] } }) => ({ kind: "json", value: body.argv }),
  };
  return await serveCalls(calls as unknown as Calls, options);
}

const open = async ({ url }: ServedCalls) => await openSocket(url + path, { headers: { authorization } });
const untilGone = async (socket: ClientSocket) =>
  await new Promise<void>((resolve) => socket.signal.addEventListener("abort", () => resolve()));

/** Sends bytes as they are, and gives what comes back until the connection is closed. */
async function sendRaw({ url }: ServedCalls, bytes: string): Promise<string> {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  raw.push(socket);
  socket.on("error", () => undefined);
  socket.write(bytes);
  return await text(socket).catch(() => "");
}

describe("a client that leaves what is sent unread", () => {
  it("holds up only what is sent to it, and is disconnected after a while, with its memory", async () => {
    let sentBytes = 0;
    const ended: unknown[] = [];
    await using service = await served(
      async (socket) => {
        const piece = Buffer.alloc(64 * 1024);
        try {
          for (;;) {
            await socket.send(piece);
            sentBytes += piece.length;
          }
        } catch (error) {
          ended.push(error);
        }
      },
      { limits: { unreadMs: 1000 } },
    );
    const client = await open(service);
    client.socket.pause();
    await expect.poll(() => service.memory.usedBytes).toBe(2 * MAX_FRAME_BYTES);
    await expect.poll(() => ended.length, { timeout: 20_000 }).toBe(1);
    // Only what the kernel's buffers take.
    expect(sentBytes).toBeLessThan(20_000_000);
    await expect.poll(() => service.memory.usedBytes).toBe(0);
    client.socket.terminate();
  });
});

describe("a client that sends", () => {
  it("more than is taken waits, and what it has sent comes in order", async () => {
    const taken: string[] = [];
    let take: () => void = () => undefined;
    await using service = await served(async (socket) => {
      socket.onFrame(async (data) => {
        taken.push(data.toString());
        await new Promise<void>((resolve) => {
          take = resolve;
        });
      });
      await untilGone(socket);
    });
    const client = await open(service);
    for (let count = 0; count < 10; count++) client.socket.send(`${count}`);
    const rest = Buffer.alloc(1024 * 1024);
    for (let count = 0; count < 50; count++) client.socket.send(rest);
    for (let count = 1; count <= 10; count++) {
      await expect.poll(() => taken.length, { interval: 5 }).toBe(count);
      take();
    }
    expect(taken.slice(0, 10).join("")).toBe("0123456789");
    // What is not taken has stayed with the client, but for what is on its way.
    await expect.poll(() => client.socket.bufferedAmount).toBeGreaterThan(20_000_000);
    client.socket.terminate();
  });

  it("a frame that is too large is disconnected, whole or in pieces, and another client is served", async () => {
    let frameCount = 0;
    await using service = await served(async (socket) => {
      socket.onFrame(async () => void frameCount++);
      await untilGone(socket);
    });
    const whole = await open(service);
    whole.socket.send(Buffer.alloc(MAX_FRAME_BYTES + 1));
    expect((await whole.closed).code).toBe(1009);
    const inPieces = await open(service);
    for (let count = 0; count < 6; count++) inPieces.socket.send(Buffer.alloc(1024 * 1024), { fin: false });
    expect((await inPieces.closed).code).toBe(1009);
    expect(frameCount).toBe(0);
    const other = await open(service);
    other.socket.send(Buffer.alloc(MAX_FRAME_BYTES));
    await expect.poll(() => frameCount).toBe(1);
    other.socket.close();
    await other.closed;
    await expect.poll(() => service.memory.usedBytes).toBe(0);
  });

  it("no frames but garbage is disconnected", async () => {
    const states: boolean[] = [];
    await using service = await served(async (socket) => {
      await untilGone(socket);
      states.push(socket.signal.aborted);
    });
    const head = `GET ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: ${authorization}\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: ${Buffer.alloc(16).toString("base64")}\r\n\r\n`;
    expect(await sendRaw(service, `${head}no frames at all, but some text`)).toMatch(/^HTTP\/1.1 101/);
    await expect.poll(() => states).toEqual([true]);
  });

  it("and goes while nothing of what it sends is taken is noticed", async () => {
    let isOver = false;
    await using service = await served(
      async (socket) => {
        socket.onFrame(async () => await new Promise(() => undefined));
        await untilGone(socket);
        isOver = true;
      },
      { limits: { unreadMs: 600 } },
    );
    const client = await open(service);
    client.socket.send("x");
    client.socket.terminate();
    await expect.poll(() => isOver, { timeout: 20_000 }).toBe(true);
    await expect.poll(() => service.memory.usedBytes).toBe(0);
  });
});

it("as many sockets are open as there is memory for, and others are refused with 429", async () => {
  const memory = new MemoryBudget(20 * 1024 * 1024);
  await using service = await served(untilGone, { memory });
  const clients = [await open(service), await open(service)];
  await expect(open(service)).rejects.toThrow("429");
  clients[0]?.socket.close();
  await expect.poll(() => memory.usedBytes).toBe(2 * MAX_FRAME_BYTES);
  const third = await open(service);
  for (const { socket } of [...clients, third]) socket.close();
  await Promise.all([...clients, third].map(async ({ closed }) => await closed));
});

it("a service that ends closes its sockets, also those of clients that do not answer", async () => {
  const service = await served(untilGone);
  const client = await open(service);
  const silent = await open(service);
  silent.socket.pause();
  await service[Symbol.asyncDispose]();
  expect((await client.closed).code).toBe(1001);
  silent.socket.terminate();
});

describe("a request that asks for another protocol", () => {
  const h2c =
    "connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n";

  it("is answered as if it had not asked", async () => {
    await using service = await served(untilGone);
    const answer = await sendRaw(
      service,
      `GET /health HTTP/1.1\r\nhost: localhost\r\n${h2c}\r\nGET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`,
    );
    expect(answer.match(/HTTP\/1.1 200/g)).toHaveLength(2);
    expect(answer).toContain('{"fine":true}');
  });

  it("is answered or refused as any other, with its body", async () => {
    await using service = await served(untilGone);
    const body = '{"argv":["true"]}';
    const post = `POST /v1/sandboxes/a/exec HTTP/1.1\r\nhost: localhost\r\n${h2c}content-length: ${body.length}\r\n`;
    expect(await sendRaw(service, `${post}connection: close\r\n\r\n${body}`)).toMatch(/^HTTP\/1.1 401/);
    const done = await sendRaw(
      service,
      `${post}authorization: ${authorization}\r\n\r\n${body}GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`,
    );
    expect(done).toContain('["true"]');
    expect(
      await sendRaw(service, `GET /health HTTP/1.1\r\nhost: evil.example\r\n${h2c}connection: close\r\n\r\n`),
    ).toMatch(/^HTTP\/1.1 403/);
  });
});
