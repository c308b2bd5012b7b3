import { once } from "node:events";
import { Agent, type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { RemoteSandbox } from "../../../src/services/serve/client/client-types.js";
import { heldBytes, heldDuring } from "../../support/garbage.js";
import { openServed, type Served } from "../../support/served.js";
import { openSocket } from "../../support/web-socket-client.js";

const MIB = 1024 * 1024;
/** What the outputs of one sandbox may take, and what is on its way. */
const MOST_MEMORY_BYTES = (32 + 48) * MIB;

let served: Served;
/** Its clients are disconnected sooner if they read nothing. */
let impatient: Served;
let sandbox: RemoteSandbox;

beforeAll(async () => {
  [served, impatient] = [await openServed(), await openServed({ http: { unreadMs: 2000 } })];
});

beforeEach(async () => {
  sandbox = await served.client.createSandbox();
});

afterEach(async () => {
  await sandbox.close();
});

afterAll(async () => {
  await Promise.all([served[Symbol.asyncDispose](), impatient[Symbol.asyncDispose]()]);
});

const path = () => `${served.url}/v1/sandboxes/${sandbox.id}/processes`;
const headers = () => ({ authorization: `Bearer ${served.tokens[0]}` });
const agent = new Agent({ keepAlive: true, maxSockets: 100 });

/** Starts a process, on one of 100 connections. */
async function start(argv: string[]): Promise<{ status: number; id: string }> {
  const sent = request(path(), { method: "POST", headers: headers(), agent });
  sent.end(JSON.stringify({ argv }));
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  const { id } = JSON.parse(await text(response)) as { id: string };
  return { status: Number(response.statusCode), id };
}

const end = async (id: string) => await fetch(`${path()}/${id}`, { method: "DELETE", headers: headers() });

/** How much more is held while output comes for so many milliseconds than before. */
const heldFor = async (ms: number, begin: () => Promise<unknown>) =>
  await heldDuring(async () => {
    await begin();
    await new Promise((resolve) => setTimeout(resolve, ms));
  });

describe("a client that starts", () => {
  it("1000 processes at once gets as many as run at a time, and the service answers others meanwhile", async () => {
    const starting = Promise.all(Array.from({ length: 1000 }, async () => await start(["sleep", "1000"])));
    expect((await served.otherClient.health()).status).toBe("ok");
    const statuses = (await starting).map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set([201, 429]));
    const startedCount = statuses.filter((status) => status === 201).length;
    expect(startedCount).toBeGreaterThanOrEqual(512);
    const records = await sandbox.processes();
    expect(records.filter(({ state }) => state === "running").length).toBeGreaterThan(100);
    // What the sandbox has no room for has ended with the reason in its output, and the others run on.
    for (const { exitCode, state } of records) if (state === "ended") expect(exitCode).toBe(126);
    const running = records.find(({ state }) => state === "running");
    await end(`${running?.id}`);
    expect((await start(["true"])).status).toBe(201);
    expect((await served.client.health()).status).toBe("ok");
  });

  it("2000 that end at once does not make the service remember all of them", async () => {
    for (let round = 0; round < 20; round++)
      await Promise.all(Array.from({ length: 100 }, async () => await start(["true"])));
    const running = async () => (await sandbox.processes()).filter(({ state }) => state === "running").length;
    await expect.poll(running).toBe(0);
    // Those that have ended are looked through when another one starts.
    await start(["true"]);
    expect((await sandbox.processes()).length).toBeLessThanOrEqual(1024);
  });
});

describe("output that nobody reads", () => {
  it("takes no more than its share, however long it goes on, and never stops its command", async () => {
    let id = "";
    const held = await heldFor(8000, async () => {
      ({ id } = await start(["cat", "/dev/zero"]));
    });
    expect(held).toBeLessThan(MOST_MEMORY_BYTES);
    const { lost, next, ended } = await lastOutput(id);
    expect(ended).toBe(false);
    expect(lost).toBeGreaterThan(20 * MIB);
    expect(next - lost).toBe(4 * MIB);
    await end(id);
  });

  it("of many processes, byte by byte from both streams, takes no more either", async () => {
    const script = "while :; do printf a; printf b >&2; done";
    const commands = Array.from({ length: 20 }, () => ["bash", "-c", script]);
    commands.push(["cat", "/dev/zero"], ["cat", "/dev/zero"]);
    const held = await heldFor(8000, async () => {
      const started = await Promise.all(commands.map(start));
      expect(started.map(({ status }) => status)).not.toContain(429);
    });
    expect(held).toBeLessThan(MOST_MEMORY_BYTES);
  });

  it("of a WebSocket takes nothing more, and the client is disconnected", async () => {
    await using other = await impatient.client.createSandbox();
    const process = await other.spawn(["sh", "-c", "read line; cat /dev/zero"]);
    const socketPath = `${impatient.url}/v1/sandboxes/${other.id}/processes/${process.id}/attach`;
    const clients = await Promise.all(
      Array.from({ length: 8 }, async () => await openSocket(socketPath, { headers: headers() })),
    );
    process.detach();
    const held = await heldFor(8000, async () => {
      for (const { socket } of clients) socket.pause();
      clients[0]?.socket.send("\n", { binary: true });
    });
    expect(held).toBeLessThan(MOST_MEMORY_BYTES);
    for (const { socket } of clients) socket.resume();
    // There was no frame that says that it is over: the connections were cut.
    for (const { closed } of clients) expect((await closed).code).toBe(1006);
    expect((await other.processes())[0]?.state).toBe("running");
  });
});

describe("input that nothing reads", () => {
  it("takes no memory once those have gone who sent it", async () => {
    const { id } = await start(["sleep", "1000"]);
    const body = Buffer.alloc(40 * MIB);
    const before = heldBytes();
    for (let round = 0; round < 5; round++) {
      const gone = new AbortController();
      const sending = Promise.allSettled(
        [1, 2, 3].map(
          async () =>
            await fetch(`${path()}/${id}/stdin`, {
              ...{ method: "POST", headers: headers(), body, signal: gone.signal },
            }),
        ),
      );
      await new Promise((resolve) => setTimeout(resolve, 700));
      gone.abort();
      await sending;
    }
    await expect.poll(heldBytes, { interval: 500, timeout: 30_000 }).toBeLessThan(before + 20 * MIB);
    await end(id);
  });

  it("is refused when the process ends, and its WebSocket gets the exit", async () => {
    const { id } = await start(["sh", "-c", "sleep 1; exit 9"]);
    const client = await openSocket(`${path()}/${id}/attach`, { headers: headers() });
    for (let count = 0; count < 20; count++) client.socket.send(Buffer.alloc(MIB));
    const sent = fetch(`${path()}/${id}/stdin`, {
      ...{ method: "POST", headers: headers(), body: Buffer.alloc(10 * MIB) },
    });
    expect((await sent).status).toBe(409);
    expect((await client.closed).code).toBe(1000);
    expect(client.frames).toEqual([{ type: "exit", exitCode: 9, signal: null }]);
  });
});

it("arguments of many megabytes are refused, or take no more than their share", async () => {
  const argv = ["true", ...Array.from({ length: 20 }, () => "x".repeat(100_000))];
  const statuses = await Promise.all(Array.from({ length: 12 }, async () => (await start(argv)).status));
  for (const status of statuses) expect([201, 400, 429]).toContain(status);
  expect((await start(["true"])).status).toBe(201);
});

it("nothing of this was a fault of the service, and it serves on", async () => {
  expect([...served.warnings, ...impatient.warnings]).toEqual([]);
  expect((await sandbox.exec(["echo", "fine"])).stdout).toBe("fine\n");
});

async function lastOutput(id: string): Promise<{ lost: number; next: number; ended: boolean }> {
  const response = await fetch(`${path()}/${id}/output`, { headers: headers() });
  return (await response.json()) as { lost: number; next: number; ended: boolean };
}
