import { describe, expect, it } from "vitest";
import { measuredRoom, type Need } from "../../../src/services/serve/sandboxes/machine-room.js";
import { testEngine } from "../../support/engine.js";
import { openServed } from "../../support/served.js";

const busy = { code: "serve.busy" };
const never = { code: "serve.quota" };

describe("a client with a quota", () => {
  it("gets no more sandboxes by asking at once, by keys, by forks, or by snapshots", async () => {
    await using served = await openServed({
      limits: { maxPlaces: 8, maxPerClient: 8, maxWaiting: 8 },
      clients: [{ quota: { maxSandboxes: 2 } }],
    });
    const { client, otherClient } = served;
    const asked = await Promise.allSettled(
      Array.from({ length: 6 }, (_, at) =>
        client.createSandbox({ workspaceKind: "overlay" }, { idempotencyKey: `key-${at}` }),
      ),
    );
    const got = asked.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    expect(got.length).toBe(2);
    const [first, second] = got;
    if (first === undefined || second === undefined) throw new Error("there are two");
    await expect(first.fork()).rejects.toMatchObject({
      ...busy,
      message: expect.stringContaining("2 sandboxes, of 2"),
    });
    const snapshot = await first.snapshot();
    await expect(client.createSandbox({ snapshot: snapshot.id })).rejects.toMatchObject(busy);
    await expect(
      client.createEpisode({ instruction: "do", check: "true", agent: "nop" }),
    ).rejects.toMatchObject(busy);
    await otherClient.createSandbox();
    await second.delete();
    await expect(first.fork({ count: 2 })).rejects.toMatchObject(busy);
    expect((await client.listSandboxes()).length).toBe(1);
    await first.fork();
    await snapshot.remove();
  });

  it("gets no more processors and memory than its sandboxes together may have", async () => {
    await using served = await openServed({ clients: [{ quota: { cpus: 5, memoryMb: 5000 } }] });
    const { client } = served;
    // A client that names no limits gets those of the mode, 4 processors and 4096 MiB, which count.
    const usual = await client.createSandbox();
    await expect(client.createSandbox()).rejects.toMatchObject({
      ...{ ...busy, message: expect.stringContaining("4 processors, of 5, and this one 4") },
    });
    await client.createSandbox({ limits: { cpus: 1, memoryMb: 256 } });
    await expect(client.createSandbox({ limits: { cpus: 6 } })).rejects.toMatchObject(never);
    await expect(client.createSandbox({ limits: { memoryMb: 6000, cpus: 1 } })).rejects.toMatchObject(never);
    // It waits until there is some again.
    const waiting = client.createSandbox({ limits: { cpus: 3, memoryMb: 256 }, waitMs: 60_000 });
    await usual.delete();
    expect((await (await waiting).exec(["true"])).exitCode).toBe(0);
  });

  it("uses only its images, modes and networks, also later", async () => {
    await using served = await openServed({
      allowsNetwork: true,
      clients: [
        {
          quota: {
            images: ["brig/*"],
            modes: ["workspace-write", "read-only"],
            networks: ["allowlist:*.example.com"],
          },
        },
      ],
    });
    const { client } = served;
    await expect(client.createSandbox({ image: "busybox" })).rejects.toMatchObject({
      ...{ ...never, message: expect.stringContaining('the image "busybox"') },
    });
    await expect(client.createSandbox({ mode: "danger-full-access" })).rejects.toMatchObject(never);
    await expect(client.createSandbox({ network: "full" })).rejects.toMatchObject(never);
    await expect(client.createSandbox({ network: "allowlist:evil.test" })).rejects.toMatchObject(never);
    for (const network of ["learn", "learn:a.example.com"] as const)
      await expect(client.createSandbox({ network })).rejects.toMatchObject(never);
    const setup = { command: ["true"], network: "allowlist:evil.test" as const };
    await expect(client.createSandbox({ setup })).rejects.toMatchObject(never);
    // E2B's clients have the whole internet if they say nothing.
    const asE2b = async (body: object, path = "") => {
      const { apiUrl, apiKey } = served.e2b[0] as { apiUrl: string; apiKey: string };
      const headers = { "x-api-key": apiKey, "content-type": "application/json" };
      const method = path === "" ? "POST" : "PUT";
      const response = await fetch(`${apiUrl}/sandboxes${path}`, {
        ...{ method, headers, body: JSON.stringify(body) },
      });
      const text = await response.text();
      return { status: response.status, answer: text === "" ? {} : JSON.parse(text) };
    };
    expect((await asE2b({ templateID: "base" })).status).toBe(403);
    expect((await asE2b({ templateID: "busybox", allow_internet_access: false })).status).toBe(403);
    const { answer: own } = await asE2b({ templateID: "base", network: { allowOut: ["a.example.com"] } });
    const rules = { "a.example.com": [{ transform: { headers: { "X-Given": "y" } } }] };
    const wider = await asE2b({ allowOut: ["evil.test"], rules }, `/${own.sandboxID}/network`);
    expect(wider.status).toBe(403);
    expect((await client.getSandbox(own.sandboxID)).record.network).toBe("allowlist:a.example.com");
    await expect(
      client.createEpisode({ instruction: "do", check: "true", agent: "nop", image: "busybox" }),
    ).rejects.toMatchObject(never);
    const sandbox = await client.createSandbox({ network: "allowlist:a.example.com", image: "brig/base" });
    await expect(sandbox.setNetwork("allowlist:a.example.com,evil.test")).rejects.toMatchObject(never);
    expect((await sandbox.setNetwork("allowlist:b.example.com")).network).toBe("allowlist:b.example.com");
    expect((await sandbox.setNetwork("none")).network).toBe("none");
  });

  it("has its sandboxes until its minutes are used up, whatever life it asks for", async () => {
    // Nine seconds of one sandbox.
    await using served = await openServed({ clients: [{ quota: { minutesPerDay: 0.15 } }] });
    const { client, otherClient } = served;
    const [sandbox, other] = [await client.createSandbox(), await otherClient.createSandbox()];
    await sandbox.spawn(["sleep", "1000"]);
    await sandbox.extend(600_000).catch(() => undefined);
    await expect.poll(async () => await client.listSandboxes()).toEqual([]);
    await expect(client.createSandbox()).rejects.toMatchObject({
      ...{ ...never, message: expect.stringContaining("minutes of the day") },
    });
    expect((await other.exec(["true"])).exitCode).toBe(0);
  });

  it("sends only so many requests a minute, and others as many as they like", async () => {
    await using served = await openServed({ clients: [{ quota: { requestsPerMinute: 5 } }] });
    const send = async (token: string) =>
      await fetch(`${served.url}/v1/sandboxes`, { headers: { authorization: `Bearer ${token}` } });
    const [token, otherToken] = served.tokens;
    const answers = await Promise.all(Array.from({ length: 12 }, () => send(token)));
    expect(answers.filter(({ status }) => status === 200).length).toBe(5);
    const refused = answers.find(({ status }) => status === 429);
    expect(Number(refused?.headers.get("retry-after"))).toBeGreaterThan(0);
    for (let count = 0; count < 20; count++) expect((await send(otherToken)).status).toBe(200);
  });
});

it("wrong tokens are refused more shortly when there are many, and right ones are not", async () => {
  await using served = await openServed();
  const send = async (token: string) => {
    const response = await fetch(`${served.url}/v1/sandboxes`, {
      headers: { authorization: `Bearer ${token}` },
    });
    await response.body?.cancel();
    return response;
  };
  const statuses = new Set<number>();
  for (let count = 0; count < 200; count++) statuses.add((await send(`wrong-${count}`)).status);
  expect([...statuses]).toEqual([401, 429]);
  expect(Number((await send("wrong")).headers.get("retry-after"))).toBeGreaterThan(0);
  expect((await send(served.tokens[0])).status).toBe(200);
});

describe("a client that sees all", () => {
  it("may extend and remove the sandboxes of others and end their processes, and use none of them", async () => {
    await using served = await openServed({ clients: [{}, { rights: { seesAll: true, mayChange: true } }] });
    const { client, otherClient } = served;
    const sandbox = await client.createSandbox();
    const { id, exit } = await sandbox.spawn(["sleep", "1000"]);
    const seen = await otherClient.getSandbox(sandbox.id);
    expect((await seen.processes()).map(({ argv }) => argv)).toEqual([["sleep", "1000"]]);
    await expect(seen.exec(["true"])).rejects.toMatchObject({ code: "serve.unknown" });
    await expect(seen.files.read("/etc/passwd")).rejects.toMatchObject({ code: "serve.unknown" });
    await (await seen.process(id)).kill();
    expect(await exit).toMatchObject({ signal: "SIGTERM" });
    const { expiresAt } = await seen.extend(1000);
    expect(Date.parse(expiresAt) - Date.now()).toBeLessThan(1001);
    await seen.delete();
    expect(await client.listSandboxes()).toEqual([]);
    const own = await otherClient.createSandbox();
    await expect(client.getSandbox(own.id)).rejects.toMatchObject({ code: "serve.unknown" });
  });
});

describe("the room of the machine", () => {
  const little: Need = { cpus: 0, memoryMb: 256, limits: { cpus: 0, memoryMb: 256 } };

  it("has no place for what does not fit beside what is there, warm sandboxes included", async () => {
    const engine = await testEngine();
    const { memoryBytes } = await engine.info();
    const memoryMb = Math.floor(memoryBytes / 1024 ** 2);
    await using served = await openServed({ room: measuredRoom(engine, { count: 2, need: little }) });
    const { client } = served;
    await expect(client.createSandbox({ limits: { memoryMb: 2 * memoryMb } })).rejects.toMatchObject({
      ...{ ...busy, message: expect.stringContaining("the machine is too small") },
    });
    const half = { limits: { memoryMb: Math.floor(memoryMb / 2), cpus: 1 } };
    const first = await client.createSandbox(half);
    await expect(client.createSandbox(half)).rejects.toMatchObject({
      ...{ ...busy, message: expect.stringMatching(/no room.*of memory, and it has left/) },
    });
    await client.createSandbox({ limits: { memoryMb: 64 } });
    const waiting = client.createSandbox({ ...half, waitMs: 60_000 });
    await first.delete();
    expect((await (await waiting).exec(["true"])).exitCode).toBe(0);
    // Nearly all of it is kept for those that are warm.
    const kept: Need = { ...little, memoryMb: Math.floor(memoryMb / 2) - 100 };
    await using warm = await openServed({ room: measuredRoom(engine, { count: 2, need: kept }) });
    await expect(warm.client.createSandbox({ limits: { memoryMb: 1024 } })).rejects.toMatchObject(busy);
  });
});
