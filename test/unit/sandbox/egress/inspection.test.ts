import { once } from "node:events";
import type { RequestListener } from "node:http";
import { request } from "node:http";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { Inspection } from "../../../../src/sandbox/egress/inspection.js";
import { egressPlace, eventually } from "../../../support/egress-place.js";
import { ask, HOST, inspectedPlace, PLACEHOLDER, SECRET, tunnel } from "../../../support/inspected-place.js";

const echo: RequestListener = (incoming, response) => {
  response.end(JSON.stringify({ url: incoming.url, method: incoming.method, headers: incoming.rawHeaders }));
};

describe("TLS that ends at the proxy", () => {
  it("shows a certificate of the sandbox's authority, and passes requests and bodies on", async () => {
    await using here = await inspectedPlace(
      (incoming, response) => {
        incoming.pipe(response);
      },
      { rules: [{ methods: ["POST"] }] },
    );
    const body = "x".repeat(300_000);
    const answer = await here.ask("/a?b=c", { method: "POST", body, alpn: ["h2", "http/1.1"] });
    expect(answer).toEqual({ status: 200, reason: "OK", text: body, protocol: "http/1.1" });
    await eventually(() =>
      expect(here.egress.attempts).toMatchObject([
        { way: "connect", host: HOST, method: "POST", path: "/a", outcome: { kind: "allowed" } },
      ]),
    );
    expect(here.egress.attempts[0]?.rule).toBe(`POST ${HOST}:${here.server.port} any path`);
  });

  it("decides about each request of a connection that is kept open", async () => {
    const seen: (string | undefined)[] = [];
    await using here = await inspectedPlace(
      (incoming, response) => {
        seen.push(incoming.url);
        response.end("yes");
      },
      { rules: [{ path: "/open/*" }] },
    );
    const tls = await tunnel(here.egress.proxyPort, {
      ...{ host: HOST, port: here.server.port, ca: here.inspection.certificate },
    });
    let text = "";
    tls.on("data", (chunk) => {
      text += chunk;
    });
    const head = `Host: ${HOST}:${here.server.port}\r\n\r\n`;
    tls.write(`GET /open/1 HTTP/1.1\r\n${head}`);
    await eventually(() => expect(text).toContain("yes"));
    tls.write(`GET /open/2 HTTP/1.1\r\n${head}`);
    await eventually(() => expect(seen).toEqual(["/open/1", "/open/2"]));
    tls.write(`GET /closed HTTP/1.1\r\n${head}`);
    await eventually(() => expect(text).toContain(`allows GET /closed`));
    expect(text).toContain("403 Forbidden");
    expect(seen).toEqual(["/open/1", "/open/2"]);
  });

  it("refuses a server whose certificate nobody vouches for, and one for another name", async () => {
    await using here = await inspectedPlace(echo, { rules: [{}] });
    const strict = await Inspection.create({
      rules: [{ host: `${HOST}:${here.server.port}` }, { host: `other.test:${here.server.port}` }],
      secrets: [],
      authorities: [],
    });
    const hosts = [`${HOST}:${here.server.port}`, `127.0.0.1:${here.server.port}`];
    await using untrusting = await egressPlace({ hosts, inspection: strict });
    const options = { port: here.server.port, ca: strict.certificate };
    const unknown = await ask(untrusting.proxyPort, "/", options);
    expect(unknown).toMatchObject({ status: 502, text: expect.stringContaining("UNABLE_TO_VERIFY_LEAF") });
    const naming = await Inspection.create({
      rules: [{ host: `other.test:${here.server.port}` }],
      secrets: [],
      authorities: [here.server.authority],
    });
    const others = [`other.test:${here.server.port}`, `127.0.0.1:${here.server.port}`];
    await using misled = await egressPlace({ hosts: others, inspection: naming });
    const wrong = await ask(misled.proxyPort, "/", {
      ...options,
      ca: naming.certificate,
      host: "other.test",
    });
    expect(wrong).toMatchObject({ status: 502, text: expect.stringContaining("ALTNAME") });
  });

  it("says of a program that speaks only HTTP/2 why it cannot connect", async () => {
    await using here = await inspectedPlace(echo, { rules: [{}] });
    await expect(here.ask("/", { alpn: ["h2"] })).rejects.toThrow(/alert|disconnected|hang up/);
    await eventually(() =>
      expect(here.egress.attempts).toMatchObject([
        {
          outcome: {
            kind: "denied",
            denial: { kind: "unreadable", errno: "ERR_SSL_NO_APPLICATION_PROTOCOL" },
          },
        },
      ]),
    );
  });

  it("leaves TLS to other hosts untouched", async () => {
    await using here = await inspectedPlace(echo, { rules: [{ methods: ["DELETE"] }] });
    const options = { host: "other.test", port: here.server.port, ca: here.server.authority };
    // The certificate is for another name, and comes from the real server.
    await expect(tunnel(here.egress.proxyPort, options)).rejects.toThrow(/altnames/);
  });

  it("refuses what is not HTTP to a host with rules", async () => {
    await using here = await inspectedPlace(echo, { rules: [{}] });
    const path = `${HOST}:${here.server.port}`;
    const opening = request({
      port: here.egress.proxyPort,
      method: "CONNECT",
      path,
      headers: { host: path },
    });
    opening.end();
    const [, socket] = await once(opening, "connect");
    socket.on("error", () => undefined);
    socket.write("SSH-2.0-hello\r\n");
    await eventually(() =>
      expect(here.egress.attempts).toMatchObject([{ outcome: { denial: { kind: "unknown-protocol" } } }]),
    );
  });
});

describe("secrets", () => {
  it("takes the place of its placeholder on the way out, and never comes back", async () => {
    let received = "";
    await using here = await inspectedPlace(
      (incoming, response) => {
        received = incoming.headers.authorization ?? "";
        response.setHeader("x-echo", received);
        response.statusMessage = `Took ${received}`;
        response.write(`${received.slice(0, 12)}`);
        setTimeout(() => response.end(`${received.slice(12)} ${Buffer.from(SECRET).toString("base64")}`), 20);
      },
      { secret: {} },
    );
    const answer = await here.ask("/", { headers: { authorization: `Bearer ${PLACEHOLDER}` } });
    expect(received).toBe(`Bearer ${SECRET}`);
    expect(answer.status).toBe(200);
    expect(answer.reason).toMatch(/^Took Bearer \*+$/);
    expect(answer.text).toMatch(/^Bearer \*+ \*{30,}[A-Za-z0-9+/]?=?=?$/);
    expect(JSON.stringify(here.egress.attempts)).not.toContain(SECRET);
  });

  it("is found in Basic credentials, in compressed answers, and in allowed parameters of the URL", async () => {
    let received: unknown = null;
    await using here = await inspectedPlace(
      (incoming, response) => {
        received = { authorization: incoming.headers.authorization, url: incoming.url };
        response.setHeader("content-encoding", "gzip");
        response.end(gzipSync(`it is ${SECRET}.`));
      },
      { secret: { query: ["key"] } },
    );
    const basic = (key: string) => `Basic ${Buffer.from(`me:${key}`).toString("base64")}`;
    const answer = await here.ask(`/?key=${PLACEHOLDER}&n=1`, {
      headers: { authorization: basic(PLACEHOLDER) },
    });
    expect(received).toEqual({
      authorization: basic(SECRET),
      url: `/?key=${encodeURIComponent(SECRET)}&n=1`,
    });
    expect(answer.text).toBe(`it is ${"*".repeat(SECRET.length)}.`);
  });

  it("is masked in names and values of headers, in whatever way they are written", async () => {
    const value = "sk-Live-7f3a9c0d51e64b22+88a1";
    const name = "sk-Live-7f3a9c0d51e64b2288a1";
    await using here = await inspectedPlace(
      (_incoming, response) => {
        response.setHeader("x-form", `a=${encodeURIComponent(value).replace("%2B", "%2b")}`);
        response.setHeader("x-json", `{"a": "${value.replace("+", "\\u002B")}"}`);
        response.end();
      },
      { secret: { value } },
    );
    await using named = await inspectedPlace(
      (_incoming, response) => {
        response.setHeader(`X-${name.toUpperCase()}`, "1");
        response.setHeader(`X-${Buffer.from(name).toString("hex")}`, "1");
        response.end();
      },
      { secret: { value: name } },
    );
    const headersOf = async (place: typeof here) => {
      const port = place.server.port;
      const tls = await tunnel(place.egress.proxyPort, {
        ...{ host: HOST, port, ca: place.inspection.certificate },
      });
      const outgoing = request({ createConnection: () => tls, headers: { host: `${HOST}:${port}` } });
      outgoing.end();
      const [incoming] = await once(outgoing, "response");
      incoming.resume();
      return incoming.rawHeaders.join("\n");
    };
    const stars = (text: string) => "*".repeat(text.length);
    const [form, json] = [encodeURIComponent(value), value.replace("+", "\\u002B")];
    expect(await headersOf(here)).toContain(`x-form\na=${stars(form)}\nx-json\n{"a": "${stars(json)}"}\n`);
    expect(await headersOf(named)).toContain(`X-${stars(name)}\n1\nX-${stars(name)}${stars(name)}\n1`);
  });

  it("is not given away in part by a host that is asked for the whole", async () => {
    let asked: string[] = [];
    let status = 200;
    await using here = await inspectedPlace(
      (incoming, response) => {
        asked = incoming.rawHeaders.map((text) => text.toLowerCase());
        response.writeHead(status);
        response.end(SECRET.slice(0, 9));
      },
      { secret: {} },
    );
    const headers = {
      ...{ range: "bytes=0-8", "request-range": "bytes=0-8", Request_Range: "bytes=0-8" },
      ...{ "x-ms-range": "bytes=0-8", "a-im": "range" },
    };
    expect((await here.ask("/", { headers })).status).toBe(200);
    expect(asked.filter((text) => /range|a-im/.test(text))).toEqual([]);
    for (status of [206, 226]) expect((await here.ask("/", { headers })).status).toBe(502);
  });

  it.each([
    ["another header", "/", { "x-else": PLACEHOLDER }, "in the header x-else"],
    ["the path", `/${PLACEHOLDER}`, {}, "in this part of the URL"],
    ["another parameter", `/?other=${PLACEHOLDER}`, {}, "in this part of the URL"],
  ])("may not be sent in %s", async (_, path, headers, reason) => {
    let requests = 0;
    await using here = await inspectedPlace(
      (_incoming, response) => {
        requests += 1;
        response.end();
      },
      { secret: { query: ["key"] } },
    );
    const answer = await here.ask(path, { headers });
    expect(answer).toMatchObject({ status: 403, text: expect.stringContaining(reason) });
    expect(requests).toBe(0);
    expect(here.egress.attempts).toMatchObject([
      { outcome: { denial: { kind: "secret", name: "API_KEY" } } },
    ]);
  });

  it("is refused to other hosts, and over plain HTTP", async () => {
    await using here = await inspectedPlace(echo, { secret: { hosts: [HOST] }, rules: [{}] });
    const headers = { authorization: `Bearer ${PLACEHOLDER}`, host: `${HOST}:${here.server.port}` };
    const plain = request({
      ...{ port: here.egress.proxyPort, path: `http://${HOST}:${here.server.port}/`, headers },
    });
    plain.end();
    const [incoming] = await once(plain, "response");
    expect(incoming.statusCode).toBe(403);
    expect((await incoming.toArray()).join("")).toContain("the secret API_KEY may not be sent");
  });
});
