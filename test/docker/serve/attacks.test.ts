import { once } from "node:events";
import { request } from "node:http";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { BrigClient } from "../../../src/services/serve/client/brig-client.js";
import type { RemoteSandbox } from "../../../src/services/serve/client/client-types.js";
import { openServed, type Served } from "../../support/served.js";

let served: Served;
let sandbox: RemoteSandbox;

beforeAll(async () => {
  served = await openServed({
    http: { headMs: 500, requestMs: 1500, unreadMs: 1000 },
    limits: { maxPlaces: 2 },
  });
  sandbox = await served.client.createSandbox();
});

afterAll(async () => {
  await served[Symbol.asyncDispose]();
});

interface Sent {
  method?: string;
  path?: string;
  headers?: Record<string, string>;
  body?: string | Buffer;
}

/** One request as it is, with the right token and host unless the headers say otherwise. */
async function send({ method = "GET", path = "/v1/sandboxes", headers = {}, body }: Sent) {
  const sent = request({
    host: "127.0.0.1",
    port: served.port,
    method,
    path,
    headers: { authorization: `Bearer ${served.tokens[0]}`, ...headers },
  });
  sent.end(body);
  const [response] = await once(sent, "response");
  const answer = await text(response);
  return { status: response.statusCode as number, headers: response.headers, answer };
}

/** What comes back until the connection is closed. */
async function sendRaw(bytes: string | Buffer): Promise<string> {
  const socket = connect(served.port, "127.0.0.1");
  socket.on("error", () => undefined);
  socket.write(bytes);
  return await text(socket).catch(() => "");
}

const exec = (more: object = {}) => ({
  method: "POST",
  path: `/v1/sandboxes/${sandbox.id}/exec`,
  body: JSON.stringify({ argv: ["echo", "done"], ...more }),
});

describe("who is let in", () => {
  it("the right token, with which the following would be done", async () => {
    const { status, answer } = await send(exec());
    expect([status, JSON.parse(answer).stdout]).toEqual([200, "done\n"]);
  });

  it.each([
    ["no token", ""],
    ["a wrong token", `Bearer ${"1".repeat(32)}`],
    ["the beginning of the token", "Bearer first-"],
    ["the token and more", `Bearer ${"first-".padEnd(32, "1")}1`],
    ["another scheme", `Basic ${"first-".padEnd(32, "1")}`],
    ["a token of many bytes", `Bearer ${"x".repeat(8000)}`],
  ])("%s is refused", async (_name, authorization) => {
    const { status, headers, answer } = await send({ ...exec(), headers: { authorization } });
    expect(status).toBe(401);
    expect(headers["www-authenticate"]).toBe('Bearer realm="brig"');
    expect(JSON.parse(answer).error.code).toBe("serve.refused");
  });

  it.each(["evil.example", "evil.example:80", "127.0.0.1.evil.example", "[::1]", "169.254.169.254"])(
    "a page whose name resolves to this machine is refused: Host %s",
    async (host) => {
      expect((await send({ ...exec(), headers: { host } })).status).toBe(403);
    },
  );

  it.each(["http://evil.example", "null", "https://localhost.evil.example"])(
    "a page of another site is refused: Origin %s",
    async (origin) => {
      expect((await send({ ...exec(), headers: { origin } })).status).toBe(403);
    },
  );

  it("health and the description need no token, and say nothing of sandboxes", async () => {
    const headers = { authorization: "" };
    expect((await send({ path: "/health", headers })).status).toBe(200);
    const { answer } = await send({ path: "/openapi.json", headers });
    expect(answer).not.toContain(sandbox.id);
  });

  it("a client is told that its token is wrong, or that nobody is there", async () => {
    const wrong = new BrigClient({ url: served.url, token: "wrong" });
    await expect(wrong.createSandbox()).rejects.toMatchObject({ code: "serve.refused" });
    const nobody = new BrigClient({ url: "http://127.0.0.1:1", token: "any" });
    await expect(nobody.health()).rejects.toMatchObject({ code: "serve.unreachable" });
    expect(() => new BrigClient({ url: "ftp://127.0.0.1", token: "any" })).toThrow(/not the address/);
  });
});

describe("bodies", () => {
  const post = async (body: string | Buffer, headers?: Record<string, string>) =>
    await send({ method: "POST", path: "/v1/sandboxes", body, headers });

  it.each([
    ["garbage", "{]"],
    ["bytes that are not UTF-8", Buffer.from([123, 255, 254, 125])],
    ["another type", "[]"],
    ["null", "null"],
    ["an unknown key", '{"__proto__x":1}'],
    ["a key of the prototype", '{"__proto__":{"mode":"danger-full-access"},"mode":"x"}'],
    ["deep nesting", `{"env":${"[".repeat(100_000)}${"]".repeat(100_000)}}`],
    ["numbers that are none", '{"idleMs":1e999}'],
  ])("%s is refused with 400", async (_name, body) => {
    const { status, answer } = await post(body);
    expect([status, JSON.parse(answer).error.code]).toEqual([400, "usage.invalid"]);
  });

  it("too many bytes are refused before they are read, or while they come", async () => {
    const announced = await send({
      method: "PUT",
      path: `/v1/sandboxes/${sandbox.id}/files?path=/tmp/x`,
      headers: { "content-length": String(1e12) },
    }).catch(() => ({ status: 413 }));
    expect(announced.status).toBe(413);
    const chunk = Buffer.alloc(1024 * 1024);
    const sent = request({
      port: served.port,
      host: "127.0.0.1",
      method: "POST",
      path: "/v1/sandboxes",
      headers: { authorization: `Bearer ${served.tokens[0]}`, "transfer-encoding": "chunked" },
    });
    sent.on("error", () => undefined);
    const answered = once(sent, "response");
    for (let count = 0; count < 20; count++) sent.write(chunk);
    const [response] = await answered;
    expect(response.statusCode).toBe(413);
    sent.destroy();
  });

  it("what a command is given cannot be more than one request", async () => {
    expect((await send(exec({ argv: [] }))).status).toBe(400);
    expect((await send(exec({ argv: ["a\0b"] }))).status).toBe(400);
    expect((await send(exec({ env: { "A=B": "x" } }))).status).toBe(400);
    expect((await send(exec({ timeoutMs: 1e12 }))).status).toBe(400);
    expect((await send(exec({ cwd: "relative" }))).status).toBe(400);
  });
});

describe("paths and heads", () => {
  it.each([
    ["/", 404],
    ["/v1/../v1/sandboxes", 404],
    ["//evil.example/v1/sandboxes", 404],
    ["/v1/sandboxes/..%2f..%2fetc", 404],
    ["/v1/sandboxes/%00", 404],
    [`/v1/sandboxes/${"a".repeat(2000)}`, 404],
    ["/v1/sandboxes/__proto__", 404],
    ["/v1/sandboxes/constructor", 404],
  ])("%.40s is %d", async (path, status) => {
    expect((await send({ path })).status).toBe(status);
  });

  it("a method that a path does not take is refused with those that it does", async () => {
    const { status, headers } = await send({ method: "PUT" });
    expect([status, headers.allow]).toEqual([405, "POST, GET"]);
  });

  it("a parameter that is given twice, or is unknown, is refused", async () => {
    const files = `/v1/sandboxes/${sandbox.id}/files`;
    expect((await send({ path: `${files}?path=/etc/passwd&path=/etc/shadow` })).status).toBe(400);
    expect((await send({ path: `${files}?path=/etc/passwd&as=root` })).status).toBe(400);
    expect((await send({ path: `${files}?path=/etc/passwd` })).status).toBe(200);
  });

  it("a huge head, an unfinished head and an unfinished body end the connection only", async () => {
    const token = `authorization: Bearer ${served.tokens[0]}\r\nhost: localhost\r\n`;
    const huge = sendRaw(`GET /v1/sandboxes HTTP/1.1\r\n${token}x: ${"y".repeat(200_000)}\r\n\r\n`);
    const slowHead = sendRaw(`GET /v1/sandboxes HTTP/1.1\r\n${token}`);
    const slowBody = sendRaw(`POST /v1/sandboxes HTTP/1.1\r\n${token}content-length: 100\r\n\r\n{"mode"`);
    const noHttp = sendRaw("\0\0\0\r\n\r\n");
    expect(await huge).toMatch(/^(?:HTTP\/1.1 431|$)/);
    expect(await slowHead).toMatch(/^HTTP\/1.1 408/);
    expect(await slowBody).toMatch(/^HTTP\/1.1 408|^$/);
    expect(await noHttp).toMatch(/^HTTP\/1.1 400/);
    expect((await send(exec())).status).toBe(200);
    // Nothing has begun for the request that was never whole.
    expect(await served.client.listSandboxes()).toHaveLength(1);
  });
});

it("a client that reads nothing of an endless output is disconnected, and its command is ended", async () => {
  const socket = connect(served.port, "127.0.0.1");
  socket.on("error", () => undefined);
  const body = JSON.stringify({ argv: ["yes"] });
  socket.write(
    `POST /v1/sandboxes/${sandbox.id}/exec-stream HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${served.tokens[0]}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  await once(socket, "data");
  socket.pause();
  const isFlooding = async () => (await sandbox.exec(["pgrep", "-x", "yes"])).exitCode === 0;
  await expect.poll(isFlooding, { timeout: 60_000 }).toBe(false);
  socket.destroy();
});

it("of 200 that want a sandbox at once so many get one as there are places; all others are told when to come again", async () => {
  const create = async () => await send({ method: "POST", body: JSON.stringify({ waitMs: 0 }) });
  const answers = await Promise.all(Array.from({ length: 200 }, create));
  const created = answers.filter(({ status }) => status === 201);
  const refused = answers.filter(({ status }) => status === 429);
  expect([created.length, refused.length]).toEqual([1, 199]);
  for (const { headers, answer } of refused) {
    expect(Number(headers["retry-after"])).toBeGreaterThan(0);
    expect(JSON.parse(answer).error.code).toBe("serve.busy");
  }
  // One that waits gets the place that becomes free; only so many may wait.
  const waiting = [1, 2, 3].map(async () => await served.client.createSandbox({ waitMs: 60_000 }));
  const settled = Promise.allSettled(waiting);
  await expect(Promise.race(waiting)).rejects.toMatchObject({ code: "serve.busy" });
  const { id } = JSON.parse(created[0]?.answer ?? "{}");
  await (await served.client.getSandbox(id)).delete();
  const first = await Promise.any(waiting);
  await first.delete();
  const outcomes = await settled;
  expect(outcomes.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "fulfilled", "rejected"]);
  for (const one of await served.client.listSandboxes()) if (one.id !== sandbox.id) await one.delete();
  expect(served.warnings).toEqual([]);
});

it("a client that goes while its sandbox starts, or waits for a place, leaves none", async () => {
  for (const waitMs of [0, 60_000]) {
    const gone = new AbortController();
    const creating = served.client.createSandbox({ waitMs }, { signal: gone.signal });
    setTimeout(() => gone.abort(new Error("the client goes")), 20);
    await expect(creating).rejects.toThrow("the client goes");
  }
  await expect.poll(async () => (await served.client.health()).sandboxes, { timeout: 30_000 }).toBe(1);
  expect(await served.client.listSandboxes()).toHaveLength(1);
});
