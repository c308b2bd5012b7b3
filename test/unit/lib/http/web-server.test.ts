import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import type { Hono } from "hono";
import { expect, it, vi } from "vitest";
import { listenOnLoopback } from "../../../../src/lib/http/loopback.js";
import {
  closeOf,
  endOf,
  openApp,
  openWebServer,
  type Served,
  sendWhole,
} from "../../../../src/lib/http/web-server.js";

const MIB = 1024 * 1024;

/** A server with the routes that `add` makes, and connections to it. */
async function serve(add: (app: Hono<Served>) => void, unreadMs?: number) {
  const app = openApp();
  add(app);
  const server = openWebServer(app, { maxConnections: 10, unreadMs });
  const port = Number((await listenOnLoopback(server, 0)).split(":")[1]);
  return {
    port,
    send(request: string): Socket {
      const socket = connect(port, "127.0.0.1");
      socket.on("error", () => undefined);
      socket.write(request);
      return socket;
    },
    [Symbol.asyncDispose]: async () => await endOf(server),
  };
}

const get = (path: string, host = "localhost") =>
  `GET ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`;

/** As much as the buffers of both sides do not take, in pieces. */
const long = () => ReadableStream.from(Array.from({ length: 32 }, () => Buffer.alloc(MIB)));

it("matches the path as it was sent", async () => {
  await using served = await serve((app) => app.get("/a", (c) => c.text("served")));
  expect(await text(served.send(get("/a?b=/c")))).toContain("served");
  for (const path of ["/b/../a", "/./a", "//a", "/%61", "/a/", "http://localhost/a"])
    expect(await text(served.send(get(path)))).toMatch(/^HTTP\/1\.1 404 /);
});

it("lets the application refuse what makes no URL", async () => {
  await using served = await serve((app) =>
    app.notFound((c) => c.text(`${c.env.incoming.headers.host}`, 404)),
  );
  expect(await text(served.send(get("/", "no url")))).toMatch(/404 [\s\S]*no url$/);
  expect(await text(served.send(get("/", "localhost@other")))).toMatch(/404 [\s\S]*localhost@other$/);
  expect(await text(served.send(get("/\\")))).toMatch(/404 [\s\S]*localhost$/);
  expect(await text(served.send("GET / HTTP/1.0\r\n\r\n"))).toMatch(/404 [\s\S]*undefined$/);
});

it("leaves the requests and the responses of the rest of the program alone", async () => {
  const before = [globalThis.Request, globalThis.Response];
  await using served = await serve((app) => app.get("/", (c) => c.text("")));
  await text(served.send(get("/")));
  expect([globalThis.Request, globalThis.Response]).toEqual(before);
});

it("disconnects a client that does not read its answer, and ends the answer", async () => {
  const cancelled = vi.fn();
  const endless = () =>
    new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(Buffer.alloc(MIB)),
      cancel: cancelled,
    });
  await using served = await serve((app) => app.get("/", () => new Response(endless())), 50);
  const socket = served.send(get("/")).pause();
  await expect.poll(() => cancelled.mock.calls.length).toBe(1);
  socket.destroy();
});

it.each([
  ["as a stream", () => new Response(Buffer.alloc(32 * MIB))],
  [
    "at once",
    (outgoing: ServerResponse) => sendWhole(outgoing, { status: 200, bytes: Buffer.alloc(32 * MIB) }),
  ],
])("gives up a client that leaves only the end of its answer unread, which is sent %s", async (_, answer) => {
  let isOver = false;
  await using served = await serve(
    (app) =>
      app.get("/", ({ env }) => {
        env.outgoing.once("close", () => {
          isOver = true;
        });
        return answer(env.outgoing);
      }),
    50,
  );
  const socket = served.send(get("/")).pause();
  await expect.poll(() => isOver).toBe(true);
  socket.destroy();
});

it("waits for an answer that comes slowly, and sends all of a long one", async () => {
  const slow = async function* () {
    yield Buffer.from("first ");
    await new Promise((resolve) => setTimeout(resolve, 300));
    yield Buffer.from("last");
  };
  await using served = await serve((app) => {
    app.get("/", () => new Response(ReadableStream.from(slow())));
  }, 100);
  await using patient = await serve((app) => app.get("/", () => new Response(long())), 30_000);
  expect(await text(served.send(get("/")))).toMatch(/first [\s\S]*last/);
  expect((await text(patient.send(get("/")))).length).toBeGreaterThan(32 * MIB);
});

it("cuts off an answer that fails, and says nothing on standard error", async () => {
  const said = vi.spyOn(console, "error");
  const failing = async function* () {
    yield Buffer.from("begun");
    await new Promise((resolve) => setTimeout(resolve, 20));
    throw new Error("failed");
  };
  await using served = await serve(
    (app) => app.get("/", () => new Response(ReadableStream.from(failing()))),
    1000,
  );
  const socket = served.send(get("/"));
  const [answer] = await Promise.all([text(socket).catch(() => ""), once(socket, "close")]);
  expect(answer).not.toMatch(/\r\n0\r\n\r\n$/);
  expect(said).not.toHaveBeenCalled();
});

it("knows that an answer is over also if its client had gone before anybody asked", async () => {
  const over = vi.fn();
  await using served = await serve((app) =>
    app.get("/a", async ({ env: { outgoing }, text: answer }) => {
      await once(outgoing, "close");
      void closeOf(outgoing).then(over);
      return answer("late");
    }),
  );
  const socket = served.send(get("/a"));
  await once(socket, "connect");
  setTimeout(() => socket.destroy(), 100);
  await vi.waitFor(() => expect(over).toHaveBeenCalled(), { timeout: 10_000 });
});
