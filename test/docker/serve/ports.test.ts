import { once } from "node:events";
import { request as openRequest } from "node:http";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RemoteSandbox } from "../../../src/services/serve/client/client-types.js";
import { startLying, startShowing } from "../../support/port-server.js";
import { openServed, type Served } from "../../support/served.js";
import { openSocket } from "../../support/web-socket-client.js";

let served: Served;
let sandbox: RemoteSandbox;

beforeAll(async () => {
  served = await openServed();
  sandbox = await served.client.createSandbox();
  await startShowing(sandbox, 3000);
});

afterAll(async () => {
  await served[Symbol.asyncDispose]();
});

const pathOf = (port: number | string, rest = "/") => `/v1/sandboxes/${sandbox.id}/ports/${port}${rest}`;

async function send(
  path: string,
  { token = served.tokens[0], ...options }: RequestInit & { token?: string } = {},
) {
  const headers = { authorization: `Bearer ${token}`, ...(options.headers as Record<string, string>) };
  const response = await fetch(`${served.url}${path}`, { ...options, headers });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

/** What a request made with all its details is answered with. */
async function sendRaw(text: string): Promise<string> {
  const socket = connect(served.port, "127.0.0.1");
  const pieces: Buffer[] = [];
  socket.on("data", (piece: Buffer) => pieces.push(piece));
  socket.on("error", () => undefined);
  socket.write(text);
  await once(socket, "close");
  return Buffer.concat(pieces).toString();
}

const head = (method: string, path: string, lines: string[] = []) =>
  [
    ...[`${method} ${path} HTTP/1.1`, "Host: localhost", `Authorization: Bearer ${served.tokens[0]}`],
    ...["Connection: close", ...lines, "", ""],
  ].join("\r\n");

describe("a request to a port", () => {
  it("reaches the server with its method, path, query, headers and body, but without the token of the service", async () => {
    const { status, text, headers } = await send(pathOf(3000, "/a/b%20c?d=e&d=f"), {
      method: "PATCH",
      headers: { "x-own": "1", cookie: "c=d", "x-forwarded-prefix": "/elsewhere" },
      body: "text",
    });
    expect(status).toBe(200);
    const seen = JSON.parse(text) as { rawHeaders: string[] };
    expect(seen).toMatchObject({ method: "PATCH", url: "/a/b%20c?d=e&d=f", body: "text" });
    const given = Object.fromEntries(
      seen.rawHeaders.flatMap((name, at) =>
        at % 2 === 0 ? [[name.toLowerCase(), seen.rawHeaders[at + 1]]] : [],
      ),
    );
    expect(given).toMatchObject({
      "x-own": "1",
      cookie: "c=d",
      "x-forwarded-prefix": `/v1/sandboxes/${sandbox.id}/ports/3000`,
    });
    expect(seen.rawHeaders.join(" ")).not.toContain(served.tokens[0]);
    expect(given).not.toHaveProperty("authorization");
    expect(headers.getSetCookie()).toEqual(["a=1", "b=2"]);
    // These are about the address of the service, or about the connection inside.
    for (const name of ["x-dropped", "clear-site-data"]) expect(headers.get(name)).toBeNull();
    expect(headers.get("content-security-policy")).toMatch(/^sandbox /);
  });

  it("has the path / if it names none, and never one of the service", async () => {
    expect(JSON.parse((await send(pathOf(3000, ""))).text)).toMatchObject({ url: "/" });
    expect(JSON.parse((await send(pathOf(3000, "?q=1"))).text)).toMatchObject({ url: "/?q=1" });
    const raw = await sendRaw(head("GET", pathOf(3000, "/../../../health")));
    expect(raw).toContain('"url":"/../../../health"');
  });

  it("streams both ways: the answer begins before the request ends", async () => {
    const request = openRequest(`${served.url}${pathOf(3000, "/stream")}`, {
      method: "POST",
      headers: { authorization: `Bearer ${served.tokens[0]}` },
    });
    request.flushHeaders();
    const [response] = await once(request, "response");
    const [first] = await once(response, "data");
    expect(`${first}`).toBe("first\n");
    request.end("sent later");
    let rest = "";
    for await (const piece of response) rest += piece;
    expect(rest).toBe("then sent later");
  });

  it("may have a body of any length, also for GET", async () => {
    const megabyte = Buffer.alloc(1024 * 1024, "x");
    async function* body() {
      for (let count = 0; count < 96; count++) yield megabyte;
    }
    const response = await fetch(`${served.url}${pathOf(3000, "/count")}`, {
      method: "POST",
      headers: { authorization: `Bearer ${served.tokens[0]}` },
      body: body(),
      duplex: "half",
    } as unknown as RequestInit);
    expect(await response.json()).toMatchObject({ count: 96 * megabyte.length });
    const raw = await sendRaw(`${head("GET", pathOf(3000), ["Content-Length: 3"])}abc`);
    expect(raw).toContain('"body":"abc"');
    const chunked = await sendRaw(
      `${head("GET", pathOf(3000), ["Transfer-Encoding: chunked"])}2\r\nde\r\n0\r\n\r\n`,
    );
    expect(chunked).toContain('"body":"de"');
  });

  it("reaches a server that listens on ::1 only, on all addresses, and one that starts later", async () => {
    expect((await send(pathOf(3001))).status).toBe(502);
    await startShowing(sandbox, 3001, "::1");
    expect((await send(pathOf(3001))).status).toBe(200);
    await startShowing(sandbox, 3002, "0.0.0.0");
    expect((await send(pathOf(3002))).status).toBe(200);
  });

  it("is 502 for a port on which nothing listens, 404 for what is no port, and 401 or 404 for others", async () => {
    const closed = await send(pathOf(3999));
    expect(closed.status).toBe(502);
    expect(JSON.parse(closed.text).error).toMatchObject({
      code: "sandbox.port-failed",
      errno: "ECONNREFUSED",
    });
    for (const port of [0, 65_536, "x", 123_456]) expect((await send(pathOf(port))).status).toBe(404);
    expect((await send(pathOf(3000), { token: served.tokens[1] })).status).toBe(404);
    expect((await send(pathOf(3000), { token: "wrong" })).status).toBe(401);
    expect((await send(pathOf(3000), { headers: { origin: "https://evil.example" } })).status).toBe(403);
    expect(await sendRaw(head("GET", pathOf(3000)).replace("localhost", "evil.example"))).toMatch(
      /^HTTP\/1.1 403 /,
    );
  });

  it("keeps a sandbox from being idle", async () => {
    await using busy = await served.client.createSandbox({ idleMs: 1500 });
    await startLying(busy, 3000, { answer: "" });
    const path = `/v1/sandboxes/${busy.id}/ports/3000/`;
    const leaving = new AbortController();
    const hanging = send(path, { signal: leaving.signal }).catch(() => null);
    const begun = Date.now();
    await expect
      .poll(
        async () =>
          (await served.client.listSandboxes()).some(({ id }) => id === busy.id) && Date.now() - begun > 3000,
      )
      .toBe(true);
    leaving.abort();
    await hanging;
  });
});

describe("a WebSocket to a port", () => {
  const authorization = () => ({ headers: { authorization: `Bearer ${served.tokens[0]}` } });

  it("passes frames both ways, until either side closes it", async () => {
    const { socket, frames, text, closed } = await openSocket(
      `${served.url}${pathOf(3000, "/ws?x=1")}`,
      authorization(),
    );
    await expect.poll(() => frames).toEqual([{ url: "/ws?x=1", authorization: null }]);
    socket.send("hello");
    await expect.poll(text).toBe("hello");
    socket.close(1000);
    expect(await closed).toMatchObject({ code: 1000 });
  });

  it("is refused as the server refuses it, and by the service without a token", async () => {
    const url = `${served.url}${pathOf(3000, "/no")}`;
    await expect(openSocket(url, authorization())).rejects.toThrow("418");
    await expect(openSocket(url, {})).rejects.toThrow("401");
    await expect(openSocket(`${served.url}${pathOf(3998)}`, authorization())).rejects.toThrow("502");
    await expect(openSocket(url, { ...authorization(), origin: "https://evil.example" })).rejects.toThrow(
      "403",
    );
  });

  it("ends with its sandbox, and with the service", async () => {
    const gone = await served.client.createSandbox();
    await startShowing(gone, 3000);
    const one = await openSocket(`${served.url}/v1/sandboxes/${gone.id}/ports/3000/`, authorization());
    await gone.delete();
    expect((await one.closed).code).toBe(1006);
    const other = await openServed();
    const inOther = await other.client.createSandbox();
    await startShowing(inOther, 3000);
    const last = await openSocket(`${other.url}/v1/sandboxes/${inOther.id}/ports/3000/`, {
      headers: { authorization: `Bearer ${other.tokens[0]}` },
    });
    await other.drain();
    expect((await last.closed).code).toBe(1006);
  });
});
