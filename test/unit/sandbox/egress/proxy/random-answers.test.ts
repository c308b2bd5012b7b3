import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { dialTo, egressPlace, eventually, tcpServer } from "../../../../support/egress-place.js";
import { nearly, runs } from "../../../../support/fuzz.js";

const CHUNKED = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n";
const good = [
  "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
  "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\nSet-Cookie: a=b\r\nSet-Cookie: c=d\r\n\r\nhello",
  `${CHUNKED}5;x=y\r\nhello\r\n0\r\nX: y\r\n\r\n`,
  "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
  "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n",
  "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nraw",
  "HTTP/1.0 200 OK\r\n\r\nuntil the end",
  "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nsmuggle",
].map((text) => Buffer.from(text, "latin1"));

/** What was found to be wrong once, and is tried each time. */
const found: [Buffer][] = [
  [Buffer.from("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nok")],
  [Buffer.from("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nokk")],
  [Buffer.from(`HTTP/1.1 200 ${"x".repeat(100_000)}\r\n\r\n`)],
  [Buffer.from(`HTTP/1.1 200 OK\r\n${"A: b\r\n".repeat(5000)}\r\n`)],
  [Buffer.from(`${CHUNKED}ffffffffffffffff\r\nhello`)],
  [Buffer.alloc(0)],
];

/** The answers that a reader finds in what came back, by their status; informational ones are part of the one that follows. */
function statuses(received: string): number[] {
  const found: number[] = [];
  for (let rest = received; rest !== ""; ) {
    const match = /^HTTP\/1\.1 (\d{3}) [^\r\n\0]*\r\n((?:[!-9;-~]+:[^\r\n\0]*\r\n)*)\r\n/.exec(rest);
    if (match === null) return [...found, Number.NaN];
    const [head, status = "", lines = ""] = match;
    found.push(Number(status));
    rest = rest.slice(head.length);
    const [, length] = /^content-length: *(\d+)\r$/im.exec(lines) ?? [];
    if (/^1|^204|^304/.test(status)) continue;
    if (length === undefined) return found;
    rest = rest.slice(Number(length));
  }
  return found.filter((status) => status >= 200);
}

describe("random answers of a server", () => {
  it("come to the program as one well-formed answer to its one request, or as none", async () => {
    const places: Awaited<ReturnType<typeof egressPlace>>[] = [];
    let whole = 0;
    await fc.assert(
      fc.asyncProperty(nearly(good), async (answer) => {
        await using server = await tcpServer((socket) => socket.once("data", () => socket.end(answer)));
        const place = await egressPlace({
          hosts: [`a.example:${server.port}`, "127.0.0.1"],
          limits: { headTimeoutMs: 500, idleTimeoutMs: 500 },
        });
        places.push(place);
        const { socket, received, ended } = await dialTo(place.proxyPort);
        const url = `http://a.example:${server.port}/`;
        socket.write(`GET ${url} HTTP/1.1\r\nHost: a.example:${server.port}\r\nConnection: close\r\n\r\n`);
        await ended;
        socket.destroy();
        const seen = statuses(received());
        expect(seen.length, received()).toBeLessThan(2);
        for (const status of seen) expect(status, received()).toBeGreaterThanOrEqual(100);
        if (seen[0] === 200) whole++;
      }),
      { numRuns: runs({ short: 150, deep: 3000 }), examples: found },
    );
    expect(whole).toBeGreaterThan(0);
    await eventually(() =>
      expect(places.filter(({ network }) => network.openConnections > 0)).toHaveLength(0),
    );
    for (const place of places) await place[Symbol.asyncDispose]();
  });
});
