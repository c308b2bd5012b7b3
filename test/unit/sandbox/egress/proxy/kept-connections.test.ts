import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, request } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { dialTo, egressPlace, eventually, tcpServer } from "../../../../support/egress-place.js";
import { HOST, inspectedPlace, tunnel } from "../../../../support/inspected-place.js";

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

describe("a connection to a server", () => {
  it("serves the next request of the program's connection, and is closed with it", async () => {
    await using server = await countingServer();
    await using place = await egressPlace({ hosts: ["a.example", "127.0.0.1"] });
    const program = await dialTo(place.proxyPort);
    for (const path of ["/1", "/2", "/3"]) {
      program.socket.write(get(server.port, path));
      await eventually(() => expect(program.received()).toContain(`to ${path}`));
    }
    expect(server.connections).toHaveLength(1);
    expect(place.lookups).toEqual(["a.example"]);
    await eventually(() =>
      expect(place.attempts).toMatchObject(
        ["/1", "/2", "/3"].map((path) => ({ path, outcome: { kind: "allowed" }, rule: "a.example" })),
      ),
    );
    const [first, second] = place.attempts;
    expect(second?.bytesOut).toBe(first?.bytesOut);
    expect(second?.bytesIn).toBe(first?.bytesIn);
    program.socket.destroy();
    await eventually(() => expect(server.connections[0]?.destroyed).toBe(true));
  });

  it("is not shared with another connection of a program", async () => {
    await using server = await countingServer();
    await using place = await egressPlace({ hosts: ["a.example", "127.0.0.1"] });
    const programs = [await dialTo(place.proxyPort), await dialTo(place.proxyPort)];
    for (const { socket, received } of programs) {
      socket.write(get(server.port, "/"));
      await eventually(() => expect(received()).toContain("to /"));
    }
    expect(server.connections).toHaveLength(2);
    for (const { socket } of programs) socket.destroy();
  });

  it("is opened anew for another host, whose requests never reach the first one", async () => {
    await using one = await countingServer();
    await using other = await countingServer();
    await using place = await egressPlace({ hosts: ["a.example", "127.0.0.1"] });
    const { socket, received } = await dialTo(place.proxyPort);
    const asked = [
      { port: one.port, path: "/1" },
      { port: other.port, path: "/2" },
      { port: one.port, path: "/3" },
    ];
    for (const { port, path } of asked) {
      socket.write(get(port, path));
      await eventually(() => expect(received()).toContain(`to ${path}`));
    }
    expect(one.paths).toEqual(["/1", "/3"]);
    expect(other.paths).toEqual(["/2"]);
    // Only the last one is kept.
    expect(one.connections).toHaveLength(2);
    await eventually(() => expect(other.connections[0]?.destroyed).toBe(true));
    socket.destroy();
  });

  it("is its own for each request that has a body or changes something", async () => {
    await using server = await countingServer();
    await using place = await egressPlace({ hosts: ["a.example", "127.0.0.1"] });
    const { socket, received } = await dialTo(place.proxyPort);
    const lines = [
      "GET /1",
      "POST /2",
      "GET /3\r\nContent-Length: 5",
      "DELETE /4",
      "GET /5\r\nTransfer-Encoding: chunked",
      "GET /6",
    ];
    for (const [at, line] of lines.entries()) {
      const [first = "", ...headers] = line.split("\r\n");
      const [method, path] = first.split(" ");
      const body = line.includes("Length") ? "hello" : line.includes("chunked") ? "0\r\n\r\n" : "";
      const extra = headers.map((header) => `${header}\r\n`).join("");
      socket.write(
        `${method} http://a.example:${server.port}${path} HTTP/1.1\r\nHost: a.example:${server.port}\r\n${extra}\r\n${body}`,
      );
      await eventually(() => expect(received()).toContain(`to /${at + 1}`));
    }
    expect(server.connectionOf).toEqual(new Map([0, 1, 2, 3, 4, 0].map((of, at) => [`/${at + 1}`, of])));
    expect(server.headers.map(({ connection }) => connection)).toEqual(
      [0, 1, 2, 3, 4, 0].map((of) => (of === 0 ? "keep-alive" : "close")),
    );
    expect(server.headers[1]).toMatchObject({ "content-length": "0" });
    socket.destroy();
  });

  it("is replaced if the server has closed it, or closes it in the moment of the next request", async () => {
    for (const when of ["before", "in that moment"]) {
      let isFirst = true;
      await using server = await tcpServer((socket) => {
        const closesNow = isFirst;
        isFirst = false;
        socket.once("data", () => {
          socket.write(OK);
          if (closesNow && when === "before") socket.end();
          if (closesNow) socket.once("data", () => socket.resetAndDestroy());
        });
      });
      await using place = await egressPlace({ hosts: ["a.example", "127.0.0.1"] });
      const { socket, received } = await dialTo(place.proxyPort);
      socket.write(get(server.port, "/1"));
      await eventually(() => expect(received()).toMatch(/ok$/));
      // The end that the server has sent has arrived by then.
      if (when === "before") await sleep(100);
      socket.write(get(server.port, "/2"));
      await eventually(() => expect(received().match(/200 OK/g), when).toHaveLength(2));
      expect(server.sockets.size, when).toBe(2);
      await eventually(() =>
        expect(place.attempts.map(({ outcome }) => outcome.kind)).toEqual(["allowed", "allowed"]),
      );
      socket.destroy();
    }
  });

  it("that breaks in the middle of an answer is an error, and the request is not repeated", async () => {
    await using server = await tcpServer((socket) => {
      socket.once("data", () => {
        socket.write(OK);
        socket.once("data", () => {
          socket.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
          setTimeout(() => socket.resetAndDestroy(), 20);
        });
      });
    });
    await using place = await egressPlace({ hosts: ["a.example", "127.0.0.1"] });
    const { socket, received, ended } = await dialTo(place.proxyPort);
    socket.write(get(server.port, "/1"));
    await eventually(() => expect(received()).toMatch(/ok$/));
    socket.write(get(server.port, "/2"));
    await ended;
    expect(received()).toMatch(/half$/);
    expect(server.sockets.size).toBe(1);
    await eventually(() =>
      expect(place.attempts[1]?.outcome).toEqual({ kind: "failed", errno: "ECONNRESET" }),
    );
  });

  it("that brings what nobody asked for is not used again", async () => {
    await using server = await tcpServer((socket) => {
      socket.once("data", () => socket.write(`${OK}${OK.replace("ok", "no")}`));
    });
    await using place = await egressPlace({ hosts: ["a.example", "127.0.0.1"] });
    const { socket, received } = await dialTo(place.proxyPort);
    for (const path of ["/1", "/2"]) {
      socket.write(get(server.port, path));
      const count = Number(path.slice(1));
      await eventually(() => expect(received().match(/\r\n\r\nok/g)).toHaveLength(count));
    }
    expect(server.sockets.size).toBe(2);
    expect(received()).not.toContain("no");
    socket.destroy();
  });

  it("is cut while it is idle when the rules no longer allow it, and is not used afterwards", async () => {
    await using server = await countingServer();
    await using place = await egressPlace({ hosts: ["a.example", "127.0.0.1"] });
    const { socket, received, ended } = await dialTo(place.proxyPort);
    socket.write(get(server.port, "/1"));
    await eventually(() => expect(received()).toContain("to /1"));
    place.egress.setHosts(["b.example"]);
    await eventually(() => expect(server.connections[0]?.destroyed).toBe(true));
    socket.write(get(server.port, "/2"));
    await ended;
    expect(received()).toContain("HTTP/1.1 403 Forbidden");
    expect(server.paths).toEqual(["/1"]);
  });

  it("is used for many requests without growing, also where requests come all at once", async () => {
    await using server = await countingServer();
    await using place = await egressPlace({ hosts: ["a.example", "127.0.0.1"] });
    const { socket, received } = await dialTo(place.proxyPort);
    const warnings: Error[] = [];
    const note = (warning: Error) => warnings.push(warning);
    process.on("warning", note);
    for (let count = 1; count <= 50; count += 1) {
      socket.write(get(server.port, `/${count}.`));
      await eventually(() => expect(received()).toContain(`to /${count}.`));
    }
    expect(server.connections).toHaveLength(1);
    socket.write(["/a", "/b", "/c"].map((path) => get(server.port, path)).join(""));
    await eventually(() => expect(received()).toMatch(/to \/a[\s\S]*to \/b[\s\S]*to \/c/));
    await eventually(() => expect(place.attempts).toHaveLength(53));
    process.off("warning", note);
    expect(warnings).toEqual([]);
    const listeners = server.connections[0]?.listenerCount("close") ?? 0;
    expect(listeners).toBeLessThan(10);
    socket.destroy();
  });

  it("is kept in TLS that ends at the proxy, where each request is decided", async () => {
    const seen: (string | undefined)[] = [];
    await using here = await inspectedPlace(
      ({ url }, response) => {
        seen.push(url);
        response.end(`to ${url}`);
      },
      { rules: [{ path: "/open/*" }] },
    );
    const tls = await tunnel(here.egress.proxyPort, {
      ...{ host: HOST, port: here.server.port, ca: here.inspection.certificate },
    });
    tls.on("error", () => undefined);
    const answers: number[] = [];
    for (const path of ["/open/1", "/open/2", "/closed"]) {
      const host = `${HOST}:${here.server.port}`;
      tls.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
      answers.push(await statusOf(tls));
    }
    expect(answers).toEqual([200, 200, 403]);
    expect(seen).toEqual(["/open/1", "/open/2"]);
    expect(here.server.connections).toBe(1);
  });

  it("is not used for a web socket after a request", async () => {
    await using server = await countingServer();
    await using place = await egressPlace({ hosts: ["a.example", "127.0.0.1"] });
    const { socket, received } = await dialTo(place.proxyPort);
    socket.write(get(server.port, "/1"));
    await eventually(() => expect(received()).toContain("to /1"));
    const upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    socket.write(get(server.port, "/2").replace(/\r\n$/, upgrade));
    await eventually(() => expect(server.connections).toHaveLength(2));
    socket.destroy();
  });
});

describe("Node's own client", () => {
  it("gets its answers by one connection on both sides", async () => {
    await using server = await countingServer();
    await using place = await egressPlace({ hosts: ["a.example", "127.0.0.1"] });
    const { Agent } = await import("node:http");
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (const path of ["/1", "/2"]) {
      const url = `http://a.example:${server.port}${path}`;
      const asked = request({
        agent,
        port: place.proxyPort,
        path: url,
        headers: { host: new URL(url).host },
      });
      asked.end();
      const [incoming] = (await once(asked, "response")) as [IncomingMessage];
      expect((await incoming.toArray()).join("")).toBe(`to ${path}`);
    }
    agent.destroy();
    expect(server.connections).toHaveLength(1);
  });
});

function get(port: number, path: string): string {
  return `GET http://a.example:${port}${path} HTTP/1.1\r\nHost: a.example:${port}\r\n\r\n`;
}

/** The status of the next answer, whose body has a length or chunks that come at once. */
async function statusOf(stream: Readable): Promise<number> {
  const [data] = (await once(stream, "data")) as [Buffer];
  return Number(/^HTTP\/1\.1 (\d+)/.exec(data.toString())?.[1]);
}

/** A server that says to which path it answers, and knows by which of its connections it was asked. */
async function countingServer() {
  const connections: Socket[] = [];
  const connectionOf = new Map<string, number>();
  const headers: IncomingMessage["headers"][] = [];
  const answer: RequestListener = (incoming, response) => {
    connectionOf.set(incoming.url ?? "", connections.indexOf(incoming.socket));
    headers.push(incoming.headers);
    incoming.resume();
    incoming.once("end", () => response.end(`to ${incoming.url}`));
  };
  const server = createServer({ keepAliveTimeout: 60_000 }, answer);
  server.on("connection", (socket) => connections.push(socket));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    ...{ connections, connectionOf, headers },
    get paths() {
      return [...connectionOf.keys()];
    },
    port: (server.address() as AddressInfo).port,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
