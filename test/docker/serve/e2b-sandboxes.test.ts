import { randomUUID } from "node:crypto";
import { Sandbox, SandboxNotFoundError } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LABELS } from "../../../src/sandbox/labels.js";
import { testEngine } from "../../support/engine.js";
import { openServed, type Served } from "../../support/served.js";

let served: Served;

beforeAll(async () => {
  served = await openServed({
    limits: { maxPlaces: 8, maxPerClient: 6, maxLifeMs: 3_600_000, idleMs: 1500 },
    templates: { tools: "brig/base" },
  });
});

afterAll(async () => {
  await served[Symbol.asyncDispose]();
});

/** Creates a sandbox as an unchanged client of E2B does, and ends it with the test. */
async function create(
  options: Parameters<typeof Sandbox.create>[1] = {},
  template = "base",
): Promise<{ sandbox: Sandbox } & AsyncDisposable> {
  const sandbox = await Sandbox.create(template, { ...served.e2b[0], ...options });
  return { sandbox, [Symbol.asyncDispose]: async () => void (await sandbox.kill()) };
}

async function api(
  method: string,
  path: string,
  { body, headers }: { body?: unknown; headers?: Record<string, string> } = {},
) {
  const { apiUrl, apiKey } = served.e2b[0];
  const response = await fetch(`${apiUrl}${path}`, {
    method,
    headers: { "x-api-key": apiKey, ...headers },
    body: body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, value: text === "" ? null : JSON.parse(text) };
}

const ofService = async (id: string) =>
  (await served.client.listSandboxes()).find((one) => one.id === id)?.record ?? null;

describe("creating a sandbox", () => {
  it("gives one of the service itself, with the template, the figures and the metadata of the client", async () => {
    const metadata = { user: "a b&c=d", "with=equals": "ü", long: "x".repeat(300), empty: "" };
    await using created = await create({ metadata, timeoutMs: 120_000 });
    const { sandbox } = created;
    expect(await sandbox.isRunning()).toBe(true);
    const info = await sandbox.getInfo();
    expect(info).toMatchObject({
      sandboxId: sandbox.sandboxId,
      templateId: "base",
      state: "running",
      metadata,
    });
    expect(info.cpuCount).toBeGreaterThan(0);
    expect(info.memoryMB).toBeGreaterThan(0);
    expect(info.endAt.getTime() - info.startedAt.getTime()).toBe(120_000);
    expect(info.envdVersion.split(".").map(Number) >= [0, 5, 7]).toBe(true);
    const record = await ofService(sandbox.sandboxId);
    expect(record).toMatchObject({ labels: metadata, workingDirectory: "/home/user", network: "none" });
  });

  it("has variables, and a home directory that can be written", async () => {
    await using created = await create({ envs: { OWN: "value" } });
    const { client } = served;
    const { id } = (await ofService(created.sandbox.sandboxId)) ?? { id: "" };
    const path = `${served.url}/v1/sandboxes/${id}/exec`;
    const answer = await fetch(path, {
      method: "POST",
      headers: { authorization: `Bearer ${served.tokens[0]}` },
      body: JSON.stringify({
        argv: ["sh", "-c", 'echo "$OWN $HOME $PWD"; echo text > "$HOME/file"; cat file'],
      }),
    });
    expect(await answer.json()).toMatchObject({ stdout: "value /home/user /home/user\ntext\n" });
    expect((await client.listSandboxes()).length).toBeGreaterThan(0);
  });

  it("takes an image, and a name of the configuration, for a template, and says which one there is not", async () => {
    await using image = await create({}, "brig/base");
    expect((await image.sandbox.getInfo()).templateId).toBe("brig/base");
    await using named = await create({}, "tools");
    expect((await named.sandbox.getInfo()).templateId).toBe("tools");
    await expect(create({}, "brig/none:7")).rejects.toThrow(/brig\/none:7/);
  });

  it.each([
    ["pause without memory", { autoPause: true, autoPauseMemory: false }],
    ["MCP gateway", { mcp: {} }],
    ["identities", { iam: { tokens: {} } }],
    ["volumes", { volumeMounts: [{ name: "v", path: "/v" }] }],
    ["egressProxy", { network: { egressProxy: { address: "a:1" } } }],
    ["httpsPorts", { network: { httpsPorts: [443] } }],
  ])("refuses by name what there is not: %s", async (words, more) => {
    const { status, value } = await api("POST", "/v2/sandboxes", { body: { templateID: "base", ...more } });
    expect(status).toBe(501);
    expect(value).toEqual({ code: 501, message: expect.stringContaining(words) });
    expect(await served.client.listSandboxes()).toEqual([]);
  });

  it("refuses what makes no sense, in the form of E2B", async () => {
    const bodies = [
      ...["no JSON", "[]", "null", "{}", '{"templateID": 1}', `${"[".repeat(5000)}${"]".repeat(5000)}`],
      ...[
        { timeout: -1 },
        { timeout: 1e12 },
        { metadata: { a: 1 } },
        { metadata: { a: "x".repeat(70_000) } },
      ],
      ...[{ envVars: { "A=B": "1" } }, { envVars: { A: "\0" } }, { network: { allowOut: "x" } }],
    ].map((body) => (typeof body === "string" ? body : { templateID: "base", ...body }));
    for (const body of bodies)
      expect(await api("POST", "/v2/sandboxes", { body }), JSON.stringify(body).slice(0, 80)).toMatchObject({
        status: 400,
        value: { code: 400, message: expect.any(String) },
      });
    const long = await api("POST", "/v2/sandboxes", {
      body: { templateID: "base", metadata: { a: "x".repeat(2_000_000) } },
    });
    expect(long).toMatchObject({ status: 413, value: { code: 413 } });
  });

  it("waits for no place: without one it is 429", async () => {
    const all = await Promise.all(Array.from({ length: 6 }, async () => await create()));
    await expect(create({ retries: 0 })).rejects.toThrow(/Rate limit/);
    await Promise.all(all.map(async (one) => await one[Symbol.asyncDispose]()));
  });
});

describe("the life of a sandbox", () => {
  it("is its timeout alone: it is never idle before, and it is removed after it", async () => {
    await using long = await create({ timeoutMs: 60_000 });
    const short = await create({ timeoutMs: 5000 });
    // The service removes sandboxes that nobody uses after 1.5 s.
    await expect.poll(async () => await ofService(short.sandbox.sandboxId)).toBeNull();
    expect(await ofService(long.sandbox.sandboxId)).not.toBeNull();
    expect(await short.sandbox.isRunning()).toBe(false);
    await expect(short.sandbox.getInfo()).rejects.toThrow(SandboxNotFoundError);
    expect(await short.sandbox.kill()).toBe(false);
  });

  it("can be set, and only be prolonged by connecting; it is never longer than the service lets it be", async () => {
    await using created = await create({ timeoutMs: 60_000 });
    const { sandbox } = created;
    const left = async () => (await sandbox.getInfo()).endAt.getTime() - Date.now();
    await sandbox.setTimeout(10_000);
    expect(await left()).toBeLessThanOrEqual(10_000);
    await sandbox.setTimeout(600_000);
    expect(await left()).toBeGreaterThan(500_000);
    const again = await Sandbox.connect(sandbox.sandboxId, { ...served.e2b[0], timeoutMs: 20_000 });
    expect(await again.isRunning()).toBe(true);
    expect(await left()).toBeGreaterThan(500_000);
    await sandbox.connect({ timeoutMs: 1_200_000 });
    expect(await left()).toBeGreaterThan(1_100_000);
    await sandbox.setTimeout(24 * 3_600_000);
    expect(await left()).toBeLessThanOrEqual(3_600_000);
    expect(
      (await api("POST", `/sandboxes/${sandbox.sandboxId}/refreshes`, { body: { duration: 60 } })).status,
    ).toBe(204);
    await sandbox.setTimeout(0);
    await expect.poll(async () => await sandbox.isRunning()).toBe(false);
  });

  it("ends with kill, once, and with the container", async () => {
    const { sandbox } = await create();
    expect(await sandbox.kill()).toBe(true);
    expect(await sandbox.kill()).toBe(false);
    expect(await Sandbox.kill("0".repeat(40), served.e2b[0])).toBe(false);
    await expect(Sandbox.connect(sandbox.sandboxId, served.e2b[0])).rejects.toThrow(SandboxNotFoundError);
    await expect(Sandbox.setTimeout(sandbox.sandboxId, 1000, served.e2b[0])).rejects.toThrow(
      SandboxNotFoundError,
    );
  });

  it("ends with its container: it is in no list then, and its place is free", async () => {
    const engine = await testEngine();
    const own = async () =>
      (await engine.listContainers([`${LABELS.ownerPid}=${process.pid}`])).map(({ id }) => id);
    const before = await own();
    await using created = await create({ timeoutMs: 60_000 });
    const { sandbox } = created;
    for (const id of await own()) if (!before.includes(id)) await engine.killContainer(id);
    await expect.poll(async () => await sandbox.isRunning()).toBe(false);
    expect(await Sandbox.list(served.e2b[0]).nextItems()).toEqual([]);
    await expect(sandbox.getInfo()).rejects.toThrow(SandboxNotFoundError);
    expect(await sandbox.kill()).toBe(false);
  });

  it("ends at its timeout for a client that wants it paused then, where the operator accepts that", async () => {
    await using accepting = await openServed({ endsAutoPaused: true });
    const lifecycle = { onTimeout: "pause" } as const;
    const sandbox = await Sandbox.create("base", { ...accepting.e2b[0], lifecycle, timeoutMs: 60_000 });
    expect((await sandbox.getInfo()).lifecycle).toEqual({ onTimeout: "kill", autoResume: false });
  });
});

/** A program of the sandbox that counts for ever, and how far it has come. */
const COUNTING = "i=0; while :; do i=$((i+1)); echo $i > /tmp/count; sleep 0.01; done";
const countOf = async (sandbox: Sandbox) => Number(await sandbox.files.read("/tmp/count"));

describe("a paused sandbox", () => {
  it("stands still, and goes on with its processes and their memory when somebody connects", async () => {
    await using created = await create({ timeoutMs: 60_000 });
    const { sandbox } = created;
    const { sandboxId } = sandbox;
    const counting = await sandbox.commands.run(COUNTING, { background: true });
    await expect.poll(async () => await countOf(sandbox).catch(() => 0)).toBeGreaterThan(5);
    expect(await sandbox.pause()).toBe(true);
    expect(await sandbox.pause()).toBe(false);
    const { state, endAt, startedAt } = await sandbox.getInfo();
    expect(state).toBe("paused");
    // It has no timeout of its own any more, but its longest life.
    expect(endAt.getTime() - startedAt.getTime()).toBe(3_600_000);
    const containers = (await (await testEngine()).listContainers([`${LABELS.ownerPid}=${process.pid}`])).map(
      async ({ id }) => (await (await testEngine()).inspectContainer(id))?.paused,
    );
    expect((await Promise.all(containers)).filter((paused) => paused === true)).toHaveLength(1);
    await expect(sandbox.commands.run("true")).rejects.toThrow();
    expect(await sandbox.isRunning()).toBe(false);
    await expect(sandbox.setTimeout(1000)).rejects.toThrow(/paused/);
    expect(await sandbox.getMetrics()).toEqual([]);
    const listed = async (states: ("running" | "paused")[]) =>
      (await Sandbox.list({ ...served.e2b[0], query: { state: states } }).nextItems()).map(
        (one) => one.sandboxId,
      );
    expect(await listed(["paused"])).toEqual([sandboxId]);
    expect(await listed(["running"])).toEqual([]);
    const own = await fetch(`${served.url}/v1/sandboxes/${sandboxId}/exec`, {
      method: "POST",
      headers: { authorization: `Bearer ${served.tokens[0]}` },
      body: JSON.stringify({ argv: ["true"] }),
    });
    expect(own.status).toBe(409);
    const connected = await Sandbox.connect(sandboxId, { ...served.e2b[0], timeoutMs: 30_000 });
    const after = await connected.getInfo();
    expect(after.state).toBe("running");
    expect(after.endAt.getTime() - Date.now()).toBeLessThanOrEqual(30_000);
    const reached = await countOf(connected);
    await expect.poll(async () => await countOf(connected)).toBeGreaterThan(reached);
    expect((await connected.commands.list()).map(({ pid }) => pid)).toContain(counting.pid);
    await counting.kill();
  });

  it("is refused what only one of the other state takes, and a pause without its memory", async () => {
    await using created = await create();
    const { sandbox } = created;
    const path = `/sandboxes/${sandbox.sandboxId}`;
    expect(await api("POST", `${path}/resume`, { body: {} })).toMatchObject({
      status: 409,
      value: { code: 409 },
    });
    await expect(sandbox.pause({ keepMemory: false })).rejects.toThrow(/support a pause without memory/);
    await sandbox.pause();
    expect(await api("POST", `${path}/connect`, { body: { memory: false } })).toMatchObject({ status: 501 });
    expect((await sandbox.getInfo()).state).toBe("paused");
    expect(await api("POST", `${path}/resume`, { body: { timeout: 60 } })).toMatchObject({ status: 201 });
    expect((await sandbox.getInfo()).state).toBe("running");
  });

  it("is what its client's timeout makes of it, and a request resumes it where that was asked for", async () => {
    const lifecycle = { onTimeout: "pause", autoResume: true } as const;
    await using created = await create({ lifecycle, timeoutMs: 60_000 });
    const { sandbox } = created;
    await sandbox.files.write("/tmp/file", "kept");
    expect((await sandbox.getInfo()).lifecycle).toEqual(lifecycle);
    await sandbox.setTimeout(0);
    await expect.poll(async () => (await sandbox.getInfo()).state).toBe("paused");
    expect(await sandbox.files.read("/tmp/file")).toBe("kept");
    expect((await sandbox.getInfo()).state).toBe("running");
  });

  it("is removed like any other, paused and resumed at the same time or not", async () => {
    await using created = await create();
    const { sandbox } = created;
    // Several times: now and then the engine does not know for a moment whether a container is paused.
    for (let time = 0; time < 5; time++) {
      const turns = Array.from({ length: 12 }, async (_, turn) =>
        turn % 2 === 0 ? await sandbox.pause() : await Sandbox.connect(sandbox.sandboxId, served.e2b[0]),
      );
      await Promise.all(turns);
      await sandbox.pause();
    }
    expect(await sandbox.kill()).toBe(true);
    expect(await ofService(sandbox.sandboxId)).toBeNull();
  });
});

describe("the list", () => {
  it("has what the client has, page by page, by metadata, template, state and time", async () => {
    await using one = await create({ metadata: { team: "a&b", run: "1" } });
    await using two = await create({ metadata: { team: "a&b", run: "2" } }, "brig/base");
    await using three = await create({ metadata: { "a=b": "%41 c" } });
    const idsOf = (all: { sandboxId: string }[]) => all.map(({ sandboxId }) => sandboxId);
    const found = async (query: object, more: object = {}) =>
      idsOf(await Sandbox.list({ ...served.e2b[0], query, ...more }).nextItems());
    const [first, second, third] = [one, two, three].map(({ sandbox }) => sandbox.sandboxId);
    expect(await found({})).toEqual([third, second, first]);
    expect(await found({}, { order: "asc" })).toEqual([first, second, third]);
    expect(await found({ metadata: { team: "a&b" } })).toEqual([second, first]);
    expect(await found({ metadata: { team: "a&b", run: "1" } })).toEqual([first]);
    expect(await found({ metadata: { "a=b": "%41 c" } })).toEqual([third]);
    expect(await found({ metadata: { team: "a" } })).toEqual([]);
    expect(await found({ template: "brig/base" })).toEqual([second]);
    expect(await found({ state: ["running"] })).toHaveLength(3);
    expect(await found({ state: ["running", "paused"] })).toHaveLength(3);
    expect(await found({ state: ["paused"] })).toEqual([]);
    const { startedAt } = await two.sandbox.getInfo();
    expect(await found({ startedAfter: startedAt })).toEqual([third, second]);
    const pages = Sandbox.list({ ...served.e2b[0], limit: 2 });
    expect(idsOf(await pages.nextItems())).toEqual([third, second]);
    expect(pages.hasNext).toBe(true);
    expect(idsOf(await pages.nextItems())).toEqual([first]);
    expect(pages.hasNext).toBe(false);
    const old = await api("GET", "/sandboxes");
    expect(old.value).toHaveLength(3);
    expect(old.headers.get("x-total-running")).toBe("3");
    for (const query of ["limit=0", "limit=x", "nextToken=%20", "order=up", "startedAfter=now"])
      expect(await api("GET", `/v2/sandboxes?${query}`), query).toMatchObject({
        status: 400,
        value: { code: 400 },
      });
  });
});

describe("copies", () => {
  const run = async (id: string, script: string) => {
    const answer = await fetch(`${served.url}/v1/sandboxes/${id}/exec`, {
      method: "POST",
      headers: { authorization: `Bearer ${served.tokens[0]}` },
      body: JSON.stringify({ argv: ["sh", "-c", script] }),
    });
    return ((await answer.json()) as { stdout: string }).stdout;
  };

  it("are forks, which carry the files of the home and not the processes", async () => {
    await using created = await create({ envs: { OWN: "1" }, metadata: { of: "parent" } });
    const { sandbox } = created;
    await run(sandbox.sandboxId, "echo before > kept; sleep 1000 & echo $OWN");
    const forks = await sandbox.fork({ count: 2, timeoutMs: 30_000 });
    for (const fork of forks) {
      if (fork instanceof Error) throw fork;
      expect(Reflect.get(fork, "envdAccessToken")).not.toBe(Reflect.get(sandbox, "envdAccessToken"));
      expect(await run(fork.sandboxId, 'cat kept; echo $OWN; ps ax | grep -c "[s]leep 1000"')).toBe(
        "before\n1\n0\n",
      );
      const { endAt, metadata } = await fork.getInfo();
      expect(endAt.getTime() - Date.now()).toBeLessThanOrEqual(30_000);
      expect(metadata).toEqual({ of: "parent" });
      await run(fork.sandboxId, "echo after > kept");
    }
    expect(await run(sandbox.sandboxId, "cat kept")).toBe("before\n");
    for (const fork of forks) if (fork instanceof Sandbox) await fork.kill();
  });

  it("fail one by one where there is no place for all of them", async () => {
    await using created = await create();
    const forks = await created.sandbox.fork({ count: 8 });
    const there = forks.filter((fork): fork is Sandbox => fork instanceof Sandbox);
    expect(there).toHaveLength(5);
    for (const error of forks.filter((fork) => fork instanceof Error))
      expect(`${error}`).toMatch(/Rate limit/);
    await Promise.all(there.map(async (fork) => await fork.kill()));
    await expect(Sandbox.fork("0".repeat(40), served.e2b[0])).rejects.toThrow(SandboxNotFoundError);
  });

  it("are snapshots, which are listed, taken for a template by id and by name, and removed", async () => {
    const { e2b } = served;
    await using created = await create({}, "tools");
    const { sandbox } = created;
    await run(sandbox.sandboxId, "echo one > number");
    // Those of a run that was ended are still there.
    const name = `numbers-${randomUUID()}`;
    const one = await sandbox.createSnapshot({ name });
    expect(one).toEqual({ snapshotId: expect.any(String), names: [name] });
    await run(sandbox.sandboxId, "echo two > number");
    const two = await sandbox.createSnapshot({ name });
    const unnamed = await sandbox.createSnapshot();
    expect(unnamed.names).toEqual([]);
    const ids = async (options: object) =>
      (await Sandbox.listSnapshots({ ...e2b[0], ...options }).nextItems()).map(
        ({ snapshotId }) => snapshotId,
      );
    expect(await ids({ sandboxId: sandbox.sandboxId })).toEqual([
      one.snapshotId,
      two.snapshotId,
      unnamed.snapshotId,
    ]);
    expect(await ids({ name })).toEqual([one.snapshotId, two.snapshotId]);
    expect(await ids({ sandboxId: "another" })).toEqual([]);
    const pages = sandbox.listSnapshots({ limit: 2 });
    expect(await pages.nextItems()).toHaveLength(2);
    expect(await pages.nextItems()).toHaveLength(1);
    expect(pages.hasNext).toBe(false);
    for (const [template, number] of [
      [one.snapshotId, "one\n"],
      [name, "two\n"],
    ] as const) {
      await using copy = await create({}, template);
      expect(await run(copy.sandbox.sandboxId, "cat number")).toBe(number);
      expect((await copy.sandbox.getInfo()).templateId).toBe(template);
    }
    // Nobody else's.
    await expect(Sandbox.create(one.snapshotId, e2b[1])).rejects.toThrow(one.snapshotId);
    expect(await Sandbox.deleteSnapshot(one.snapshotId, e2b[1])).toBe(false);
    for (const { snapshotId } of [one, two, unnamed])
      expect(await Sandbox.deleteSnapshot(snapshotId, e2b[0])).toBe(true);
    expect(await Sandbox.deleteSnapshot(one.snapshotId, e2b[0])).toBe(false);
    expect(await ids({ sandboxId: sandbox.sandboxId })).toEqual([]);
  });
});

it("metrics are those of the sandbox at the moment", async () => {
  await using created = await create();
  const [metric] = await created.sandbox.getMetrics();
  expect(metric?.memUsed).toBeGreaterThan(0);
  expect(metric?.memTotal).toBeGreaterThan(metric?.memUsed ?? 0);
  expect(metric?.cpuCount).toBeGreaterThan(0);
});

describe("who may use it", () => {
  it("has the key of a client, also as E2B's keys begin, and sees only its own sandboxes", async () => {
    await using created = await create();
    const { sandboxId } = created.sandbox;
    const prefixed = { ...served.e2b[0], apiKey: `e2b_${served.e2b[0].apiKey}` };
    expect((await Sandbox.getInfo(sandboxId, prefixed)).sandboxId).toBe(sandboxId);
    for (const apiKey of ["e2b_0000", "wrong", served.e2b[0].apiKey.slice(1)])
      await expect(Sandbox.getInfo(sandboxId, { ...served.e2b[0], apiKey })).rejects.toThrow(/Unauthorized/);
    expect(await api("GET", "/v2/sandboxes", { headers: { "x-api-key": "" } })).toMatchObject({
      status: 401,
      value: { code: 401, message: expect.stringContaining("E2B_API_KEY") },
    });
    const other = served.e2b[1];
    expect(await Sandbox.list(other).nextItems()).toEqual([]);
    await expect(Sandbox.getInfo(sandboxId, other)).rejects.toThrow(SandboxNotFoundError);
    await expect(Sandbox.connect(sandboxId, other)).rejects.toThrow(SandboxNotFoundError);
    await expect(Sandbox.fork(sandboxId, other)).rejects.toThrow(SandboxNotFoundError);
    await expect(Sandbox.createSnapshot(sandboxId, other)).rejects.toThrow(SandboxNotFoundError);
    await expect(Sandbox.updateNetwork(sandboxId, {}, other)).rejects.toThrow(SandboxNotFoundError);
    expect(await Sandbox.kill(sandboxId, other)).toBe(false);
    expect(await created.sandbox.isRunning()).toBe(true);
  });

  it("is no page of another site, and asks for this machine", async () => {
    const foreign = [{ origin: "https://evil.example" }, { origin: "null" }];
    for (const headers of foreign)
      expect(await api("GET", "/v2/sandboxes", { headers })).toMatchObject({
        status: 403,
        value: { code: 403 },
      });
  });

  it("is told what there is not, by name", async () => {
    const { sandboxId } = { sandboxId: "0".repeat(40) };
    for (const [method, path, words] of [
      ["GET", "/volumes", "volumes"],
      ["POST", "/v3/templates", "template builds"],
      ["GET", "/secrets", "secrets"],
      ["GET", `/v2/sandboxes/${sandboxId}/logs`, "logs"],
      ["GET", "/teams", "teams"],
    ] as const)
      expect(await api(method, path)).toMatchObject({
        status: 501,
        value: { code: 501, message: expect.stringContaining(words) },
      });
    for (const path of ["", "/", "/nothing", "/v2/sandboxes/%ff/x", "/templates/none"])
      expect((await api("DELETE", path)).status, path).toBe(404);
  });
});
