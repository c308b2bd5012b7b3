import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { WebSocketServer } from "ws";
import { dialTo, egressPlace, eventually, tcpServer } from "../../../../support/egress-place.js";

describe("plain HTTP through the proxy", () => {
  it("reaches an allowed host, byte for byte in both directions", async () => {
    await using server = await httpServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk) => chunks.push(chunk));
      request.once("end", () => {
        response.writeHead(201, "Made", { "X-Two": ["a", "b"], "Keep-Alive": "timeout=5" });
        response.end(
          `${request.method} ${request.url} ${request.headers.host} ${Buffer.concat(chunks).length}`,
        );
      });
    });
    await using place = await egressPlace({ hosts: [`a.example:${server.port}`, "127.0.0.1"] });
    const body = "x".repeat(300_000);
    const { socket, received, ended } = await dialTo(place.proxyPort);
    const head = `POST http://a.example:${server.port}/p?q=1 HTTP/1.1\r\nHost: a.example:${server.port}\r\n`;
    socket.write(
      `${head}Proxy-Connection: close\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    await ended;
    expect(received()).toMatch(/^HTTP\/1\.1 201 Made\r\nX-Two: a\r\nX-Two: b\r\n/);
    expect(received()).toContain(`POST /p?q=1 a.example:${server.port} 300000`);
    expect(server.requests[0]?.rawHeaders.join("\n")).not.toContain("Proxy-Connection");
    await eventually(() => {
      expect(place.attempts).toMatchObject([
        {
          ...{ way: "http", host: "a.example", port: server.port, method: "POST", path: "/p" },
          ...{ outcome: { kind: "allowed" }, rule: `a.example:${server.port}`, owner: { channel: 7 } },
        },
      ]);
    });
    expect(place.attempts[0]?.bytesOut).toBeGreaterThan(300_000);
  });

  it("is decided anew for each request of a connection, before any name is looked up", async () => {
    await using server = await httpServer((_, response) => response.end("served"));
    await using place = await egressPlace({ hosts: ["a.example", "127.0.0.1"] });
    const { socket, received, ended } = await dialTo(place.proxyPort);
    socket.write(get(`a.example:${server.port}`));
    await eventually(() => expect(received()).toContain("served"));
    socket.write(get("denied.example"));
    await ended;
    expect(received()).toContain("HTTP/1.1 403 Forbidden");
    expect(received()).toContain("x-brig-egress: denied");
    expect(received()).toContain("no rule of this sandbox's network allow-list allows denied.example");
    expect(received()).toContain("--network allowlist:denied.example");
    expect(place.lookups).toEqual(["a.example"]);
    expect(place.attempts.map(({ outcome }) => outcome)).toContainEqual({
      kind: "denied",
      denial: { kind: "no-rule" },
    });
  });

  it("does not reach an address that no rule names, and dials the address that it checked", async () => {
    await using server = await httpServer((_, response) => response.end("inside"));
    let lookups = 0;
    const rebinding = async () => (++lookups === 1 ? ["127.0.0.1"] : ["1.1.1.1"]);
    await using place = await egressPlace({ hosts: ["a.example"], resolve: rebinding });
    expect(await ask(place.proxyPort, get(`a.example:${server.port}`))).toMatch(
      /^HTTP\/1\.1 403[\s\S]*stands for 127\.0\.0\.1, a loopback address/,
    );
    expect(server.requests).toEqual([]);
    expect(lookups).toBe(1);
  });

  it("reaches this machine as host.internal, at the port that a rule names only", async () => {
    await using server = await httpServer((_, response) => response.end("a model"));
    await using other = await httpServer((_, response) => response.end("a secret"));
    await using place = await egressPlace({ hosts: [`host.internal:${server.port}`, "@public"] });
    expect(await ask(place.proxyPort, get(`host.internal:${server.port}`))).toContain("a model");
    expect(await ask(place.proxyPort, get(`host.internal:${other.port}`))).toMatch(/^HTTP\/1\.1 403/);
    expect(place.lookups).toEqual([]);
  });

  it("follows no redirect, so that the next host is decided, too", async () => {
    await using server = await httpServer((_, response) =>
      response.writeHead(302, { location: "http://denied.example/" }).end(),
    );
    await using place = await egressPlace({ hosts: ["a.example", "127.0.0.1"] });
    expect(await ask(place.proxyPort, get(`a.example:${server.port}`))).toContain("302 Found");
    expect(await ask(place.proxyPort, get("denied.example"))).toMatch(/^HTTP\/1\.1 403/);
  });

  it.each([
    ["a Host header for another host", "GET http://a.example/ HTTP/1.1\r\nHost: b.example\r\n\r\n", 421],
    ["two Host headers", "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nHost: a.example\r\n\r\n", 400],
    ["no Host header", "GET http://a.example/ HTTP/1.1\r\n\r\n", 400],
    ["TRACE", "TRACE http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", 405],
    ["no host in its target", "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n", 400],
    ["another scheme", "GET https://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", 400],
    ["a user", "GET http://u@a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", 400],
    ["a NUL", "GET http://evil\0.a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", 400],
    ["bytes that are not ASCII", "GET http://b\xfccher.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", 400],
    ["an odd spelling of an address", "GET http://0x7f.1/ HTTP/1.1\r\nHost: 0x7f.1\r\n\r\n", 400],
    ["a name of 300 characters", `GET http://${"a".repeat(300)}/ HTTP/1.1\r\nHost: a.example\r\n\r\n`, 400],
    [
      "two lengths",
      "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
      400,
    ],
    [
      "a length and chunks",
      "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      400,
    ],
    [
      "too long headers",
      `GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nX: ${"x".repeat(70_000)}\r\n\r\n`,
      431,
    ],
    ["no HTTP", "HELLO\r\n\r\n", 400],
    ["HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400],
  ])("with %s is refused", async (_, text, status) => {
    await using place = await egressPlace({ hosts: ["a.example", "127.0.0.1"] });
    expect(await ask(place.proxyPort, text)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(place.lookups).toEqual([]);
  });

  it("says what went wrong if an allowed host cannot be reached, or breaks its answer", async () => {
    await using broken = await tcpServer((socket) => socket.once("data", () => socket.resetAndDestroy()));
    await using place = await egressPlace({
      hosts: ["a.example", "gone.example", "127.0.0.1"],
      resolve: async (name) => {
        if (name === "a.example") return ["127.0.0.1"];
        throw Object.assign(new Error("no such name"), { code: "ENOTFOUND" });
      },
    });
    expect(await ask(place.proxyPort, get("gone.example"))).toMatch(
      /^HTTP\/1\.1 502[\s\S]*allowed, but cannot be reached: ENOTFOUND/,
    );
    expect(await ask(place.proxyPort, get(`a.example:${broken.port}`))).toMatch(/^HTTP\/1\.1 502/);
    await eventually(() => {
      const outcomes = place.attempts.map(({ outcome }) => outcome);
      expect(outcomes).toEqual([
        { kind: "failed", errno: "ENOTFOUND" },
        { kind: "failed", errno: "ECONNRESET" },
      ]);
    });
  });

  it.each([
    ["a control character in its reason", "HTTP/1.1 200 O\x01K\r\nContent-Length: 2\r\n\r\nhi"],
    ["status 99", "HTTP/1.1 099 Low\r\nContent-Length: 2\r\n\r\nhi"],
    ["a protocol that nobody asked for", "HTTP/1.1 101 Other\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"],
    ["no HTTP", "220 welcome\r\n"],
  ])("turns an answer with %s into a failure, and goes on", async (_, text) => {
    await using odd = await tcpServer((socket) => socket.once("data", () => socket.write(text, "latin1")));
    await using server = await httpServer((_, response) => response.end("served"));
    await using place = await egressPlace({ hosts: ["a.example", "127.0.0.1"] });
    expect(await ask(place.proxyPort, get(`a.example:${odd.port}`))).toMatch(/^HTTP\/1\.1 502 Bad Gateway/);
    await eventually(() => {
      expect(place.attempts.map(({ outcome }) => outcome.kind)).toEqual(["failed"]);
    });
    const [atServer] = odd.sockets;
    await eventually(() => expect(atServer?.readableEnded || atServer?.destroyed).toBe(true));
    expect(await ask(place.proxyPort, get(`a.example:${server.port}`))).toContain("served");
  });

  it("ends the request if the program goes away during an endless answer", async () => {
    await using server = await httpServer((_, response) => {
      response.write("begun");
      const more = setInterval(() => response.write("."), 5);
      response.once("close", () => clearInterval(more));
    });
    await using place = await egressPlace({ hosts: ["a.example", "127.0.0.1"] });
    const { socket, received } = await dialTo(place.proxyPort);
    socket.write(get(`a.example:${server.port}`));
    await eventually(() => expect(received()).toContain("begun"));
    socket.destroy();
    await eventually(() => expect(place.attempts).toHaveLength(1));
    expect(server.open()).toBe(0);
  });

  it("answers a program that closes its side after its requests, in whatever way it has come", async () => {
    const held: ServerResponse[] = [];
    await using server = await httpServer((_, response) => {
      held.push(response);
    });
    await using place = await egressPlace({ hosts: ["a.example", "127.0.0.1"] });
    const authority = `a.example:${server.port}`;
    const post = get(authority)
      .replace("GET", "POST")
      .replace("\r\n\r\n", "\r\nContent-Length: 4\r\n\r\nbody");
    const connect = `CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n\r\n`;
    for (const sent of [
      get(authority),
      post,
      `${connect}${get(authority).replace(`http://${authority}`, "")}`,
    ]) {
      const { socket, received, ended } = await dialTo(place.proxyPort);
      socket.end(sent);
      await eventually(() => expect(held).toHaveLength(1));
      expect(received()).not.toContain("late answer");
      held.pop()?.end("late answer");
      expect(await ended).toBe("end");
      expect(received()).toContain("late answer");
    }
  });

  it("answers all requests that a program has sent before it closes its side", async () => {
    await using server = await httpServer((request, response) => response.end(`served ${request.url}`));
    await using place = await egressPlace({ hosts: ["a.example", "127.0.0.1"] });
    const { socket, received, ended } = await dialTo(place.proxyPort);
    socket.end(
      get(`a.example:${server.port}`) + get(`a.example:${server.port}`).replace(/\/ HTTP/, "/2 HTTP"),
    );
    expect(await ended).toBe("end");
    expect(received()).toMatch(/served \/[^2][\s\S]*served \/2/);
  });

  it("ends a request whose body is cut off", async () => {
    await using server = await httpServer(() => undefined);
    await using place = await egressPlace({ hosts: ["a.example", "127.0.0.1"] });
    const { socket, ended } = await dialTo(place.proxyPort);
    const post = get(`a.example:${server.port}`).replace("GET", "POST");
    socket.write(post.replace("\r\n\r\n", "\r\nContent-Length: 9\r\n\r\nbody"));
    await eventually(() => expect(server.requests).toHaveLength(1));
    socket.end();
    await ended;
    await eventually(() => expect(place.attempts).toHaveLength(1));
    await eventually(() => expect(server.open()).toBe(0));
  });

  it("passes web sockets", async () => {
    await using server = await httpServer((_, response) => response.writeHead(404).end("no socket"));
    const sockets = new WebSocketServer({ server: server.server, path: "/ws" });
    sockets.on("connection", (one) => one.on("message", (data) => one.send(`echo ${String(data)}`)));
    await using place = await egressPlace({ hosts: ["a.example", "127.0.0.1"] });
    const authority = `a.example:${server.port}`;
    const upgrade =
      "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";
    const { socket, received } = await dialTo(place.proxyPort);
    socket.write(`GET http://${authority}/ws HTTP/1.1\r\nHost: ${authority}\r\n${upgrade}\r\n\r\n`);
    await eventually(() => expect(received()).toMatch(/^HTTP\/1\.1 101/));
    // The text "hi", masked with zeros.
    socket.write(Buffer.from([0x81, 0x82, 0, 0, 0, 0, 0x68, 0x69]));
    await eventually(() => expect(received()).toContain("echo hi"));
    socket.destroy();
    const other = `GET http://${authority}/other HTTP/1.1\r\nHost: ${authority}\r\n${upgrade}\r\n\r\n`;
    expect(await ask(place.proxyPort, other)).toMatch(/^HTTP\/1\.1 40\d/);
    const denied = `GET http://denied.example/ HTTP/1.1\r\nHost: denied.example\r\n${upgrade}\r\n\r\n`;
    expect(await ask(place.proxyPort, denied)).toMatch(/^HTTP\/1\.1 403/);
  });

  it("answers an offer of HTTP/2 by HTTP/1.1", async () => {
    await using server = await httpServer((_, response) => response.end("served"));
    await using place = await egressPlace({ hosts: ["a.example", "127.0.0.1"] });
    const authority = `a.example:${server.port}`;
    const offer = `GET http://${authority}/ HTTP/1.1\r\nHost: ${authority}\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAA\r\n\r\n`;
    expect(await ask(place.proxyPort, offer)).toMatch(/^HTTP\/1\.1 200[\s\S]*served/);
    expect(server.requests[0]?.headers).not.toHaveProperty("http2-settings");
  });

  it("is cut off if its head never ends", async () => {
    await using place = await egressPlace({ hosts: [], limits: { headTimeoutMs: 50 } });
    const silent = await dialTo(place.proxyPort);
    const slow = await dialTo(place.proxyPort);
    slow.socket.write("GET http://a.example/ HTTP/1.1\r\nX:");
    const dripping = setInterval(() => slow.socket.write("x"), 10);
    expect(await silent.ended).toBe("reset");
    expect(await slow.ended).toBe("reset");
    clearInterval(dripping);
  });

  it("is limited in its connections, and has them again once some have ended", async () => {
    await using place = await egressPlace({ hosts: [], limits: { maxConnections: 3 } });
    const first = await Promise.all([1, 2, 3].map(() => dialTo(place.proxyPort)));
    await eventually(() => expect(place.network.openConnections).toBe(3));
    const fourth = await dialTo(place.proxyPort).catch(() => null);
    if (fourth !== null) expect(await fourth.ended).toBe("reset");
    expect(place.attempts).toMatchObject([{ outcome: { denial: { kind: "too-many", limit: 3 } } }]);
    for (const { socket } of first) socket.destroy();
    await eventually(() => expect(place.network.openConnections).toBe(0));
    expect(await ask(place.proxyPort, get("a.example"))).toMatch(/^HTTP\/1\.1 403/);
  });
});

function get(authority: string): string {
  return `GET http://${authority}/ HTTP/1.1\r\nHost: ${authority}\r\n\r\n`;
}

/** What comes back before the proxy has nothing more to say. */
async function ask(port: number, text: string): Promise<string> {
  const { socket, received, ended } = await dialTo(port);
  const closing = text.replace(
    "\r\n\r\n",
    text.includes("Connection:") ? "\r\n\r\n" : "\r\nConnection: close\r\n\r\n",
  );
  socket.write(Buffer.from(closing, "latin1"));
  await ended;
  socket.destroy();
  return received();
}

async function httpServer(onRequest: (request: IncomingMessage, response: ServerResponse) => void) {
  const requests: IncomingMessage[] = [];
  let open = 0;
  const server = createServer((request, response) => {
    requests.push(request);
    onRequest(request, response);
  });
  server.on("connection", (socket) => {
    open += 1;
    socket.once("close", () => {
      open -= 1;
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    server,
    requests,
    open: () => open,
    port: (server.address() as AddressInfo).port,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
