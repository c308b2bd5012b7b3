import { once } from "node:events";
import type { AddressInfo, Socket } from "node:net";
import { connect as connectTls, createServer as createTlsServer } from "node:tls";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { dialTo, egressPlace, eventually, tcpServer } from "../../../../support/egress-place.js";
import { selfSigned } from "../../../../support/self-signed.js";

const tls = createTlsServer({ ...selfSigned }, (socket) => {
  socket.on("error", () => undefined);
  socket.end("secret hello");
});
let tlsPort = 0;

beforeAll(async () => {
  tls.listen(0, "127.0.0.1");
  await once(tls, "listening");
  tlsPort = (tls.address() as AddressInfo).port;
});

afterAll(() => {
  tls.close();
});

/** The ways in which a program asks for a tunnel. */
const ways = {
  connect: async (port: number, host: string, to: number) => {
    const dialled = await dialTo(port);
    dialled.socket.write(`CONNECT ${host}:${to} HTTP/1.1\r\nHost: ${host}:${to}\r\n\r\n`);
    const answer = await answered(dialled.received, /^HTTP\/1\.1 (\d+)[\s\S]*?\r\n\r\n/, dialled.ended);
    return { ...dialled, isOpen: answer === "200", answer };
  },
  socks: async (port: number, host: string, to: number) => {
    const dialled = await dialTo(port);
    const name = Buffer.from(host, "latin1");
    dialled.socket.write(Buffer.from([5, 2, 0, 2]));
    await eventually(() => expect(bytes(dialled.received())).toEqual([5, 0]));
    dialled.socket.write(Buffer.from([5, 1, 0, 3, name.length, ...name, to >> 8, to & 255]));
    await Promise.race([
      dialled.ended,
      eventually(() => expect(dialled.received().length).toBeGreaterThanOrEqual(12)),
    ]);
    const answer = bytes(dialled.received())[3] ?? null;
    return { ...dialled, isOpen: answer === 0, answer };
  },
};

describe.each(Object.entries(ways))("a tunnel by %s", (way, open) => {
  it("carries TLS whose name is the target's, in both directions to its end", async () => {
    await using place = await egressPlace({ hosts: ["a.example", "127.0.0.1"] });
    const tunnel = await open(place.proxyPort, "A.example", tlsPort);
    expect(await helloOver(tunnel.socket, "a.example")).toBe("secret hello");
    await eventually(() => {
      expect(place.attempts).toMatchObject([
        { way, host: "a.example", port: tlsPort, outcome: { kind: "allowed" }, rule: "a.example" },
      ]);
    });
    expect(place.attempts[0]?.bytesIn).toBeGreaterThan(500);
  });

  it("is cut if the TLS connection is for another host, and the program gets an alert", async () => {
    await using place = await egressPlace({ hosts: ["a.example", "127.0.0.1"] });
    const tunnel = await open(place.proxyPort, "a.example", tlsPort);
    await expect(helloOver(tunnel.socket, "b.example")).rejects.toMatchObject({
      code: "ERR_SSL_TLSV1_ALERT_ACCESS_DENIED",
    });
    expect(place.attempts).toMatchObject([
      { outcome: { kind: "denied", denial: { kind: "other-name", name: "b.example" } } },
    ]);
  });

  it("carries another protocol only to a port that a rule names", async () => {
    await using echo = await tcpServer((socket) => socket.pipe(socket));
    await using place = await egressPlace({ hosts: ["a.example", `db.example:${echo.port}`, "127.0.0.1"] });
    const web = await open(place.proxyPort, "a.example", echo.port);
    web.socket.write("SSH-2.0-x\r\n");
    expect(await web.ended).toBe("reset");
    expect(place.attempts).toMatchObject([{ outcome: { denial: { kind: "unknown-protocol" } } }]);
    const database = await open(place.proxyPort, "db.example", echo.port);
    const answer = database.received().length;
    const data = Buffer.alloc(1_000_000, "0123456789");
    database.socket.end(data);
    expect(await database.ended).toBe("end");
    expect(database.received().slice(answer)).toBe(data.toString("latin1"));
    await eventually(() =>
      expect(place.attempts[1]).toMatchObject({ outcome: { kind: "allowed" }, bytesOut: 1e6, bytesIn: 1e6 }),
    );
  });

  it("lets the server speak first where any protocol is allowed", async () => {
    await using greeter = await tcpServer((socket) => socket.write("220 welcome\r\n"));
    await using place = await egressPlace({ hosts: [`mail.example:${greeter.port}`, "127.0.0.1"] });
    const tunnel = await open(place.proxyPort, "mail.example", greeter.port);
    await eventually(() => expect(tunnel.received()).toContain("220 welcome"));
    tunnel.socket.destroy();
  });

  it("is refused for a target that no rule allows, before any lookup", async () => {
    await using place = await egressPlace({ hosts: ["a.example", "127.0.0.1"] });
    const tunnel = await open(place.proxyPort, "denied.example", 443);
    expect(tunnel.answer).toBe(way === "socks" ? 2 : "403");
    expect(place.lookups).toEqual([]);
    expect(place.attempts).toMatchObject([
      { way, host: "denied.example", port: 443, outcome: { kind: "denied", denial: { kind: "no-rule" } } },
    ]);
  });

  it.each(["evil\0.a.example", "0x7f.1", "127.1", "b\xfccher.example", "fe80::1%eth0", "x".repeat(250)])(
    "is refused for %j, which can be read in two ways or not at all",
    async (host) => {
      await using place = await egressPlace({ hosts: ["a.example", "@public", "127.0.0.1"] });
      const tunnel = await open(place.proxyPort, host, 80);
      expect(tunnel.isOpen).toBe(false);
      expect(place.lookups).toEqual([]);
    },
  );

  it("says that an allowed host refuses connections", async () => {
    const gone = await tcpServer(() => undefined);
    await gone[Symbol.asyncDispose]();
    await using place = await egressPlace({ hosts: ["a.example", "127.0.0.1"] });
    const tunnel = await open(place.proxyPort, "a.example", gone.port);
    expect(tunnel.answer).toBe(way === "socks" ? 5 : "502");
    expect(place.attempts).toMatchObject([{ outcome: { kind: "failed", errno: "ECONNREFUSED" } }]);
  });

  it("breaks when the server breaks it, and is not taken for a whole one", async () => {
    await using server = await tcpServer((socket) => socket.once("data", () => socket.resetAndDestroy()));
    await using place = await egressPlace({ hosts: [`a.example:${server.port}`, "127.0.0.1"] });
    const tunnel = await open(place.proxyPort, "a.example", server.port);
    tunnel.socket.write("\0");
    expect(await tunnel.ended).toBe("reset");
    await eventually(() => expect(place.attempts).toMatchObject([{ outcome: { errno: "ECONNRESET" } }]));
  });

  it("is cut as soon as the rules no longer allow it", async () => {
    await using echo = await tcpServer((socket) => socket.pipe(socket));
    await using place = await egressPlace({ hosts: [`a.example:${echo.port}`, "127.0.0.1"] });
    const tunnel = await open(place.proxyPort, "a.example", echo.port);
    tunnel.socket.write("\0ping");
    await eventually(() => expect(tunnel.received()).toContain("ping"));
    place.egress.setHosts(["b.example"]);
    expect(await tunnel.ended).toBe("reset");
    await eventually(() =>
      expect(place.attempts).toMatchObject([{ outcome: { denial: { kind: "rules-changed" } } }]),
    );
    expect((await open(place.proxyPort, "a.example", echo.port)).isOpen).toBe(false);
  });

  it("is cut as soon as no rule names its address any more", async () => {
    await using echo = await tcpServer((socket) => socket.pipe(socket));
    const named = `a.example:${echo.port}`;
    await using place = await egressPlace({ hosts: [named, "127.0.0.1"] });
    const tunnel = await open(place.proxyPort, "a.example", echo.port);
    tunnel.socket.write("\0ping");
    await eventually(() => expect(tunnel.received()).toContain("ping"));
    place.egress.setHosts([named, "127.0.0.1", "b.example"]);
    tunnel.socket.write("again");
    await eventually(() => expect(tunnel.received()).toContain("again"));
    place.egress.setHosts([named]);
    expect(await tunnel.ended).toBe("reset");
    await eventually(() =>
      expect(place.attempts).toMatchObject([{ outcome: { denial: { kind: "rules-changed" } } }]),
    );
  });

  it("with plain HTTP in it goes by the rules of HTTP", async () => {
    const requests: string[] = [];
    await using server = await tcpServer((socket) =>
      socket.on("data", (chunk) => {
        requests.push(String(chunk));
        socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
      }),
    );
    await using place = await egressPlace({ hosts: ["a.example", "127.0.0.1"] });
    const authority = `a.example:${server.port}`;
    const tunnel = await open(place.proxyPort, "a.example", server.port);
    tunnel.socket.write(`GET /x HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
    await eventually(() => expect(tunnel.received()).toContain("\r\n\r\nok"));
    tunnel.socket.write("GET /x HTTP/1.1\r\nHost: b.example\r\n\r\n");
    await tunnel.ended;
    expect(tunnel.received()).toContain("HTTP/1.1 421");
    expect(requests).toHaveLength(1);
    expect(server.sockets.size).toBe(1);
  });

  it("ends when a program says nothing in it", async () => {
    await using server = await tcpServer(() => undefined);
    await using place = await egressPlace({
      hosts: ["a.example", "127.0.0.1"],
      limits: { headTimeoutMs: 50 },
    });
    const tunnel = await open(place.proxyPort, "a.example", server.port);
    expect(await tunnel.ended).toBe("reset");
    await eventually(() => expect(place.attempts).toMatchObject([{ outcome: { errno: "ETIMEDOUT" } }]));
  });
});

describe("the proxy", () => {
  it.each([
    ["a Host header that disagrees", "CONNECT a.example:443 HTTP/1.1\r\nHost: b.example\r\n\r\n", "421"],
    ["no port", "CONNECT a.example HTTP/1.1\r\nHost: a.example\r\n\r\n", "400"],
    ["a path", "CONNECT a.example:443/x HTTP/1.1\r\nHost: a.example\r\n\r\n", "400"],
  ])("refuses CONNECT with %s", async (_, text, status) => {
    await using place = await egressPlace({ hosts: ["a.example", "127.0.0.1"] });
    const { socket, received, ended } = await dialTo(place.proxyPort);
    socket.write(text);
    await ended;
    expect(received()).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  });

  it.each([
    ["UDP", [5, 3, 0, 1, 1, 1, 1, 1, 0, 53], 7],
    ["listening", [5, 2, 0, 1, 1, 1, 1, 1, 0, 53], 7],
    ["an unknown kind of address", [5, 1, 0, 9, 1, 1], 8],
    ["the port 0", [5, 1, 0, 1, 1, 1, 1, 1, 0, 0], 2],
    ["an IPv6 address of this machine", [5, 1, 0, 4, ...Array(15).fill(0), 1, 0, 80], 2],
    [
      "an IPv4 address mapped into IPv6",
      [5, 1, 0, 4, ...Array(10).fill(0), 255, 255, 127, 0, 0, 1, 0, 80],
      2,
    ],
  ])("refuses SOCKS requests for %s", async (_, request, code) => {
    await using place = await egressPlace({ hosts: ["@public"] });
    const { socket, received, ended } = await dialTo(place.proxyPort);
    // With a user and a password, which are of no interest.
    socket.write(Buffer.from([5, 1, 2, 1, 1, 65, 1, 66, ...request]));
    await ended;
    expect(bytes(received()).slice(0, 6)).toEqual([5, 2, 1, 0, 5, code]);
    expect(place.attempts).toMatchObject([{ outcome: { kind: "denied" } }]);
  });

  it.each([
    ["TLS", [0x16, 3, 1, 0, 1, 1]],
    ["SOCKS 4", [4, 1, 0, 80, 1, 1, 1, 1, 0]],
    ["zeros", [0, 0, 0, 0]],
  ])("resets connections that begin with %s", async (_, start) => {
    await using place = await egressPlace({ hosts: ["@public"] });
    const { socket, ended } = await dialTo(place.proxyPort);
    socket.write(Buffer.from(start));
    expect(await ended).toBe("reset");
  });
});

function bytes(text: string): number[] {
  return [...Buffer.from(text, "latin1")];
}

async function answered(received: () => string, pattern: RegExp, ended: Promise<unknown>) {
  let isOver = false;
  void ended.then(() => {
    isOver = true;
  });
  return await eventually(() => {
    const match = pattern.exec(received());
    if (match === null && !isOver) throw new Error("no answer yet");
    return match?.[1] ?? null;
  });
}

/** What the TLS server says over an open tunnel. */
async function helloOver(socket: Socket, servername: string): Promise<string> {
  socket.removeAllListeners("data");
  const secure = connectTls({ socket, servername, rejectUnauthorized: false });
  const chunks: Buffer[] = [];
  for await (const chunk of secure) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}
