import { getEventListeners, once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type Duplex, Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { asRefusal } from "../../../../src/sandbox/docker/engine-failure.js";
import { openModem } from "../../../../src/sandbox/docker/modem.js";
import { openTransport, readAtMost, type Transport } from "../../../../src/sandbox/docker/transport.js";

interface Served {
  transport: Transport;
  server: Server;
}

/** A transport to a server of this process. */
async function served(answer: RequestListener = () => undefined): Promise<Served> {
  const server = createServer(answer);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const endpoint = { kind: "tcp", address: "tcp://test", host: "127.0.0.1", port, tls: null } as const;
  return { transport: openTransport(await openModem(endpoint), { apiVersion: "1.41" }), server };
}

/** Becomes a raw stream, as an engine's exec does, and hands its own end to the test. */
function upgrading(server: Server, firstBytes = ""): Promise<Duplex> {
  return new Promise((resolve) => {
    server.once("upgrade", (_, socket) => {
      onTestFinished(() => void socket.destroy());
      socket.write(`HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n${firstBytes}`);
      resolve(socket);
    });
  });
}

/** All that comes on a stream that lends its bytes. */
async function received(stream: Duplex): Promise<string> {
  let text = "";
  stream.on("data", (bytes: Buffer) => {
    text += bytes.toString();
  });
  await once(stream, "end");
  return text;
}

const get = { method: "GET", path: "/x" } as const;
const post = { method: "POST", path: "/exec/1/start", body: { Tty: false } } as const;
const listeners = (signal: AbortSignal) => getEventListeners(signal, "abort").length;
const never = () => new AbortController().signal;

describe("a request", () => {
  it("carries the version, its query and its body", async () => {
    const seen: string[] = [];
    const { transport } = await served(async (request, response) => {
      const body = (await buffer(request)).toString();
      seen.push(`${request.method} ${request.url} ${request.headers["content-type"]} ${body}`);
      response.end("{}");
    });
    const query = { all: true, filters: { label: ["a=b&c"] }, none: undefined };
    await transport.json({ method: "GET", path: "/containers/json", query }, never());
    await transport.json({ method: "POST", path: "/x", body: { a: "ü" } }, never());
    expect(seen).toEqual([
      "GET /v1.41/containers/json?all=true&filters=%7B%22label%22%3A%5B%22a%3Db%26c%22%5D%7D undefined ",
      'POST /v1.41/x application/json {"a":"ü"}',
    ]);
  });

  it("is refused in the words of the engine's JSON, or of whoever answered for it", async () => {
    let body = "";
    const { transport } = await served((_, response) => void response.writeHead(409).end(body));
    const words = async () => asRefusal(await transport.json(get, never()).catch((error: unknown) => error));
    body = '{"message":"busy"}';
    expect(await words()).toMatchObject({ status: 409, words: "busy" });
    body = "<html>bad gateway</html>".padEnd(100_000, " x");
    expect((await words())?.words).toMatch(/^<html>bad gateway/);
    expect((await words())?.words.length).toBeLessThan(5000);
    await expect(transport.upgrade(post, never())).rejects.toMatchObject({ status: 409 });
  });
});

it("a reply is read up to exactly as many bytes as it may have", async () => {
  const reply = () => Readable.from([Buffer.from("abc"), Buffer.from("de")]);
  expect((await readAtMost(reply(), 5))?.toString()).toBe("abcde");
  expect(await readAtMost(reply(), 4)).toBe(null);
});

describe("what was read before an upgrade", () => {
  it("is still what arrived when it is looked at later", async () => {
    const pieces = Array.from({ length: 8 }, (_, index) => Buffer.alloc(10_000, index + 1));
    const { transport } = await served(async (_, response) => {
      for (const piece of pieces) {
        response.write(piece);
        await sleep(20);
      }
      response.end();
    });
    const body = await transport.stream(get, never());
    // Held by the stream meanwhile, while later pieces are read from the same socket.
    await sleep(300);
    expect((await buffer(body)).equals(Buffer.concat(pieces))).toBe(true);
  });

  it("is given to the stream first, where the first bytes came with the upgrade itself", async () => {
    const { transport, server } = await served();
    const far = upgrading(server, "first ");
    const stream = await transport.upgrade(post, never());
    const text = received(stream);
    (await far).end("second");
    expect(await text).toBe("first second");
  });

  it("waits, with what follows it, for somebody who listens", async () => {
    const { transport, server } = await served();
    const opening = upgrading(server, "first ");
    const stream = await transport.upgrade(post, never());
    const far = await opening;
    // Each is long enough to write over what the sockets have read before.
    const pieces = ["b", "c", "d"].map((letter) => letter.repeat(1000));
    for (const piece of pieces) {
      far.write(piece);
      await sleep(50);
    }
    far.end();
    expect(await received(stream)).toBe(["first ", ...pieces].join(""));
  });
});

describe("an abort", () => {
  it.each(["json", "stream", "upgrade"] as const)(
    "ends an unanswered %s with its reason, and the connection with it",
    async (kind) => {
      const { transport, server } = await served();
      const stop = new AbortController();
      const connection = once(server, "connection");
      const request = transport[kind](post, stop.signal);
      request.catch(() => undefined);
      const [socket] = await connection;
      const closed = once(socket, "close");
      const reason = new Error("enough");
      stop.abort(reason);
      await expect(request).rejects.toBe(reason);
      await closed;
      expect(listeners(stop.signal)).toBe(0);
    },
  );

  it("that came before is found out without a word to the engine", async () => {
    const { transport } = await served();
    const reason = new Error("before");
    await expect(transport.json(get, AbortSignal.abort(reason))).rejects.toBe(reason);
    await expect(transport.upgrade(post, AbortSignal.abort(reason))).rejects.toBe(reason);
  });

  it("breaks off an answer that is still arriving", async () => {
    const { transport } = await served((_, response) => void response.write('{"a":'));
    for (const kind of ["json", "stream"] as const) {
      const stop = new AbortController();
      const reason = new Error("enough");
      const reading = transport[kind](get, stop.signal).then((body) => buffer(body as Readable));
      setTimeout(() => stop.abort(reason), 100);
      await expect(reading).rejects.toBe(reason);
      expect(listeners(stop.signal)).toBe(0);
    }
  });

  it("has nobody to tell when the request is over", async () => {
    const { transport, server } = await served((_, response) => void response.end("{}"));
    const stop = new AbortController();
    for (let round = 0; round < 20; round++) await transport.json(get, stop.signal);
    await buffer(await transport.stream(get, stop.signal));
    const far = upgrading(server);
    const stream = await transport.upgrade(post, stop.signal);
    await far;
    await expect.poll(() => listeners(stop.signal)).toBe(0);
    stream.destroy();
  });

  it("has no power over a stream that the engine has handed over", async () => {
    const { transport, server } = await served();
    const opening = upgrading(server);
    const stop = new AbortController();
    const stream = await transport.upgrade(post, stop.signal);
    const far = await opening;
    stop.abort(new Error("later"));
    const text = received(stream);
    await sleep(50);
    far.end("still here");
    expect(await text).toBe("still here");
  });
});

it("a stream lends its bytes for the length of an event", async () => {
  const { transport, server } = await served();
  const opening = upgrading(server);
  const stream = await transport.upgrade(post, never());
  const far = await opening;
  const [first] = await Promise.all([once(stream, "data"), far.write("AAAA")]).then(([event]) => event);
  expect(first.toString()).toBe("AAAA");
  await Promise.all([once(stream, "data"), far.write("BBBB")]);
  expect(first.toString()).toBe("BBBB");
  stream.destroy();
});
