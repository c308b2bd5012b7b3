import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { dialTo, egressPlace, eventually, tcpServer } from "../../../../support/egress-place.js";
import { runs } from "../../../../support/fuzz.js";

const ALLOWED = "a.example";
const DENIED = "b.example";

const pick = <T>(...values: T[]) => fc.constantFrom(...values);
/** Mostly the first one, so that many requests get as far as the server. */
const mostly = <T>(usual: T, ...others: T[]) =>
  fc.oneof({ weight: 4, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: pick(...others) });

const eol = mostly("\r\n", "\n", "\r", "\r\r\n", "\r\n ");
const host = mostly(
  ALLOWED,
  ...[
    DENIED,
    `${ALLOWED}@${DENIED}`,
    `${DENIED}#${ALLOWED}`,
    `${DENIED}\\@${ALLOWED}`,
    `${ALLOWED}\t${DENIED}`,
  ],
  ...[`${ALLOWED}.`, "A.Example", `${ALLOWED},${DENIED}`, "0x7f.1", "[::1]", ""],
);
const lengthLine = mostly(
  "",
  ...[
    "Content-Length: 5",
    "Content-Length: +5",
    "Content-Length: 5, 5",
    "Content-Length : 5",
    "Content-Length: 0x5",
  ],
  ...["Transfer-Encoding: chunked", "Transfer-Encoding: xchunked", "Transfer-Encoding: identity, chunked"],
  ...["Transfer-Encoding:\tchunked", "Transfer-Encoding: chunked, chunked", " Transfer-Encoding: chunked"],
  ...[
    "Transfer-Encoding: gzip, chunked",
    "Content-Length: 5\r\nTransfer-Encoding: chunked",
    "Content-Length: 00005",
  ],
);
const otherLine = mostly(
  "X: y",
  ...[
    "Connection: close, Host",
    "Connection: Content-Length",
    "X:\0",
    "X: \x01",
    "X",
    ": y",
    "Expect: 100-continue",
  ],
  ...[
    "Upgrade: websocket\r\nConnection: Upgrade",
    "Trailer: Host",
    `X: y\nHost: ${DENIED}`,
    "Proxy-Connection: keep-alive",
  ],
);
const body = mostly(
  "",
  ...["hello", "5\r\nhello\r\n0\r\n\r\n", "5;x=\ny\r\nhello\r\n0\r\n\r\n", "0x5\r\nhello\r\n0\r\n\r\n"],
  ...[
    "5\nhello\n0\n\n",
    "05\r\nhello\r\n0\r\nHost: b.example\r\n\r\n",
    "-1\r\nhello\r\n0\r\n\r\n",
    "5\r\nhelloX\r\n0\r\n\r\n",
  ],
  ...["ffffffffffffffff1\r\nhello", `GET http://${DENIED}/ HTTP/1.1\r\nHost: ${DENIED}\r\n\r\n`],
);
const request = fc
  .record({
    method: mostly("GET", "POST", "OPTIONS", "TRACE", "get", "CONNECT", "G\0T"),
    target: host,
    path: mostly("/p?q", "", "//x", "/%0d%0aHost:b.example", "/\x7f", "*", "/a b", "/é"),
    version: mostly("HTTP/1.1", "HTTP/1.0", "HTTP/0.9", "HTTP/2.0", "HTTP/1.1 "),
    hostLines: fc.array(host, { minLength: 1, maxLength: 2 }),
    lines: fc.tuple(lengthLine, otherLine),
    ends: fc.tuple(eol, eol, eol),
    body,
  })
  .map((parts) => ({ ...parts, text: (port: number) => textOf(parts, port) }));

interface Parts {
  method: string;
  target: string;
  path: string;
  version: string;
  hostLines: string[];
  lines: string[];
  ends: [string, string, string];
  body: string;
}

function textOf(
  { method, target, path, version, hostLines, lines, ends, body }: Parts,
  port: number,
): string {
  const [first, second, last] = ends;
  const named = hostLines.slice(0, target === ALLOWED ? 1 : 2).map((one) => `Host: ${one}:${port}`);
  const headers = [...named, ...lines.filter((line) => line !== "")];
  return `${method} http://${target}:${port}${path} ${version}${first}${headers.join(second)}\r\n${last}${body}`;
}

/** What a strict reader finds wrong with the bytes of one connection to a server; null for whole requests, of which only the last has a body. */
function fault(sent: string, port: number): string | null {
  const end = sent.indexOf("\r\n\r\n");
  if (end === -1) return sent === "" ? null : "no whole head";
  const [line = "", ...headers] = sent.slice(0, end).split("\r\n");
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be there
  if (/[\0-\x08\x0a-\x1f\x7f]/.test(sent.slice(0, end).replaceAll("\r\n", ""))) return "a control character";
  if (!/^[A-Z]+ (\/\S*|\*) HTTP\/1\.1$/.test(line)) return `the line ${JSON.stringify(line)}`;
  if (!headers.every((one) => /^[!-9;-~]+: ?\S?.*$/.test(one))) return "a malformed header";
  const valuesOf = (name: string) =>
    headers
      .filter((one) => one.toLowerCase().startsWith(`${name}:`))
      .map((one) => one.slice(name.length + 1).trim());
  // A name is the same in capitals, and with the dot at its end.
  if (valuesOf("host").join().toLowerCase().replace(".:", ":") !== `${ALLOWED}:${port}`)
    return `the host ${valuesOf("host").join()}`;
  const lengths = valuesOf("content-length");
  const encodings = valuesOf("transfer-encoding");
  const rest = sent.slice(end + 4);
  if (lengths.length + encodings.length > 1) return "two lengths";
  if (encodings.length === 1) {
    if (encodings[0] !== "chunked") return `the encoding ${encodings[0]}`;
    return /^(?:[1-9a-f][0-9a-f]*\r\n[\s\S]*?\r\n)*(?:0\r\n\r\n)?$/i.test(rest) ? null : "malformed chunks";
  }
  if (lengths.length === 0 && /^(?:GET|HEAD|OPTIONS) /.test(line)) return fault(rest, port);
  const allowed = Number(lengths[0] ?? 0);
  return rest.length <= allowed ? null : `${rest.length} bytes of body instead of ${allowed}`;
}

/** A server that keeps what comes on each of its connections, and answers once, or whenever something comes. */
async function keepingServer(answersOften: boolean) {
  const connections: string[] = [];
  const server = await tcpServer((socket) => {
    const at = connections.push("") - 1;
    socket.on("data", (chunk: Buffer) => {
      connections[at] += chunk.toString("latin1");
    });
    const answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    // Late enough that everything of the request has come, even what must not.
    if (answersOften) socket.on("data", () => setTimeout(() => socket.writable && socket.write(answer), 3));
    else
      socket.once("data", () =>
        setTimeout(() => socket.end(answer.replace("\r\n\r", "\r\nConnection: close\r\n\r")), 3),
      );
  });
  return { ...server, connections };
}

describe("random requests", () => {
  it.each([
    ["one whole request on each connection", false],
    ["whole requests on connections that servers keep open", true],
  ])("reach only the allowed host, %s, whatever they consist of", async (_, answersOften) => {
    const places: Awaited<ReturnType<typeof egressPlace>>[] = [];
    let reused = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(request, { minLength: 1, maxLength: 3 }), async (requests) => {
        await using server = await keepingServer(answersOften);
        const place = await egressPlace({
          hosts: [`${ALLOWED}:${server.port}`, "127.0.0.1"],
          limits: { headTimeoutMs: 200, idleTimeoutMs: 200 },
        });
        places.push(place);
        const { socket, received, ended } = await dialTo(place.proxyPort);
        let isOver = false;
        void ended.then(() => {
          isOver = true;
        });
        const writeAndWait = async (text: string) => {
          const before = received().length;
          socket.write(text, "latin1");
          // A request whose end never comes is cut off in this time.
          const isAnswered = () => received().length > before || isOver;
          for (let round = 0; round < 100 && !isAnswered(); round += 1) await sleep(3);
        };
        const whole = `GET http://${ALLOWED}:${server.port}/ HTTP/1.1\r\nHost: ${ALLOWED}:${server.port}\r\n\r\n`;
        const random = requests.map((one) => one.text(server.port));
        // Most random requests keep no connection, so that two are used once more before the random ones come.
        const texts = answersOften ? [whole, whole, ...random] : random;
        // One after the other, so that connections are used again.
        if (answersOften) for (const text of texts) await writeAndWait(text);
        socket.end(answersOften ? "" : texts.join(""), "latin1");
        await ended;
        socket.destroy();
        await eventually(() => {
          const open = [...server.sockets].filter((one) => !one.readableEnded && !one.destroyed);
          expect(open).toHaveLength(0);
        });
        expect(place.lookups.filter((name) => name !== ALLOWED)).toEqual([]);
        expect(
          server.connections.map((sent) => fault(sent, server.port)).filter((one) => one !== null),
        ).toEqual([]);
        await eventually(() => {
          const reached = place.attempts.filter(({ outcome }) => outcome.kind !== "denied");
          expect(reached.length).toBeGreaterThanOrEqual(server.connections.length);
          reused += Math.max(0, reached.length - server.connections.length);
        });
      }),
      { numRuns: answersOften ? runs({ short: 25, deep: 400 }) : runs({ short: 75, deep: 1200 }) },
    );
    await eventually(() =>
      expect(places.filter(({ network }) => network.openConnections > 0)).toHaveLength(0),
    );
    for (const place of places) await place[Symbol.asyncDispose]();
    // Otherwise the test would not have tried what it is for.
    if (answersOften) expect(reused).toBeGreaterThan(0);
  });
});
