import { once } from "node:events";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { MAX_MESSAGE_BYTES } from "../../../src/services/exec-server/connection.js";
import { serveWebSocket } from "../../../src/services/exec-server/serve-websocket.js";
import { commonOptions, ExecClient, startParams, uri } from "../../support/exec-client.js";
import { type TemporaryDirectory, temporaryDirectory } from "../../support/sandbox.js";

const token = "0123456789abcdef0123456789abcdef";
const stopped = new AbortController();
let directory: TemporaryDirectory;
let ended: Promise<void>;
let url: string;

beforeAll(async () => {
  directory = await temporaryDirectory();
  const sandbox = await commonOptions();
  url = await new Promise<string>((resolve, reject) => {
    const service = { port: 0, token, sandbox, directory: directory.path, signal: stopped.signal };
    ended = serveWebSocket({ ...service, onListening: resolve });
    ended.catch(reject);
  });
});
afterAll(async () => {
  stopped.abort(new Error("stopped"));
  await expect(ended).rejects.toThrow("stopped");
  await directory[Symbol.asyncDispose]();
});

async function connect(): Promise<{ client: ExecClient; socket: WebSocket }> {
  const socket = new WebSocket(url, { headers: { authorization: `Bearer ${token}` } });
  const client = new ExecClient((message) => socket.send(message));
  socket.on("message", (data) => client.receive(String(data)));
  await once(socket, "open");
  return { client, socket };
}

/** The answer to somebody who is not let in. */
async function refusal(
  headers: Record<string, string>,
): Promise<{ status: number | undefined; body: string }> {
  const upgrade = { connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13" };
  const asked = request(url.replace("ws:", "http:"), {
    headers: { ...upgrade, "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==", ...headers },
  });
  const [response] = await Promise.all([once(asked, "response").then(([first]) => first), asked.end()]);
  return { status: response.statusCode, body: await text(response) };
}

describe("a client over a WebSocket", () => {
  it("is served on loopback, with the token", async () => {
    expect(url).toMatch(/^ws:\/\/127\.0\.0\.1:[0-9]+$/);
    const { client, socket } = await connect();
    await client.initialize();
    await client.call("process/start", startParams("a", "echo over ws", { workspace: directory.path }));
    expect(await client.closed("a")).toMatchObject({ exitCode: 0, output: "over ws\n" });
    socket.close();
  });

  it.each<[string, Record<string, string>, number]>([
    ["without a token", {}, 401],
    ["with a wrong token", { authorization: `Bearer ${token.replace("0", "1")}` }, 401],
    ["with the beginning of the token", { authorization: `Bearer ${token.slice(0, 8)}` }, 401],
    ["with another scheme", { authorization: `Basic ${token}` }, 401],
    ["from a page in a browser", { authorization: `Bearer ${token}`, origin: "http://localhost" }, 403],
  ])("is not let in %s", async (_, headers, status) => {
    const refused = await refusal(headers);
    expect(refused).toEqual({
      status,
      body: expect.stringMatching(/^(the token is missing or wrong|browsers)/),
    });
  });

  it("that speaks plain HTTP is told so", async () => {
    const response = await fetch(url.replace("ws:", "http:"));
    expect(response.status).toBe(426);
  });

  it("comes back to its session, whose processes went on", async () => {
    const first = await connect();
    const id = await first.client.initialize();
    const command = "echo before; until [ -e go ]; do sleep 0.02; done; echo after; touch done; sleep 60";
    await first.client.call("process/start", startParams("p", command, { workspace: directory.path }));
    await first.client.until(() => first.client.output("p") !== "");
    const intruder = await connect();
    expect(
      (await intruder.client.ask("initialize", { clientName: "x", resumeSessionId: id })).error,
    ).toMatchObject({
      message: expect.stringMatching(/already attached/),
    });
    first.socket.terminate();
    const second = await connect();
    await expect
      .poll(
        async () =>
          (await second.client.ask("initialize", { clientName: "x", resumeSessionId: id })).result?.sessionId,
      )
      .toBe(id);
    await second.client.call("process/start", startParams("q", "touch go", { workspace: directory.path }));
    await expect.poll(() => existsSync(join(directory.path, "done"))).toBe(true);
    const { chunks } = await second.client.call("process/read", { processId: "p", afterSeq: 0, waitMs: 0 });
    const output = (chunks as { chunk: string }[]).map(({ chunk }) => atob(chunk)).join("");
    expect(output).toBe("before\nafter\n");
    await second.client.call("process/terminate", { processId: "p" });
    await second.client.closed("p");
    second.socket.close();
    intruder.socket.close();
  });

  it("comes back without its open files", async () => {
    const first = await connect();
    const id = await first.client.initialize();
    await writeFile(join(directory.path, "open"), "root");
    const file = { handleId: "h", path: uri(join(directory.path, "open")), sandbox: null };
    await first.client.call("fs/open", file);
    first.socket.terminate();
    const second = await connect();
    const resume = { clientName: "x", resumeSessionId: id };
    await expect.poll(async () => (await second.client.ask("initialize", resume)).result?.sessionId).toBe(id);
    const block = { handleId: "h", offset: 0, len: 4 };
    expect((await second.client.ask("fs/readBlock", block)).error).toMatchObject({ code: -32004 });
    await second.client.call("fs/open", file);
    expect((await second.client.call("fs/readBlock", block)).chunk).toBe(btoa("root"));
    expect((await second.client.ask("initialize", resume)).error).toMatchObject({ code: -32600 });
    const third = await connect();
    expect((await third.client.ask("initialize", resume)).error?.message).toMatch(/already attached/);
    for (const { socket } of [second, third]) socket.close();
  });

  it("is cut off by a message that is too long, and the next client is served", async () => {
    const { client, socket } = await connect();
    await client.initialize();
    socket.on("error", () => undefined);
    const closed = once(socket, "close");
    socket.send("x".repeat(MAX_MESSAGE_BYTES + 1));
    expect((await closed)[0]).toBe(1009);
    const next = await connect();
    await next.client.initialize();
    next.socket.close();
  });

  it("may not send bytes", async () => {
    const { client, socket } = await connect();
    socket.send(Buffer.from("{}"));
    await client.until(() => client.strays.length > 0);
    expect(client.strays[0]?.message).toMatch(/binary/);
    socket.close();
  });
});
