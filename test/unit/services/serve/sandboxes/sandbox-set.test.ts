import { networkInterfaces } from "node:os";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { BrigError } from "../../../../../src/errors.js";
import type { Sandbox } from "../../../../../src/sandbox/index.js";
import { Capacity } from "../../../../../src/services/serve/sandboxes/capacity.js";
import { SandboxSet } from "../../../../../src/services/serve/sandboxes/sandbox-set.js";
import { settingCalls } from "../../../../../src/services/serve/sandboxes/setting-calls.js";
import {
  createSandboxSchema,
  type RemoteSandboxOptions,
} from "../../../../../src/services/serve/wire/schemas.js";
import { listSandboxesSchema } from "../../../../../src/services/serve/wire/setting-schemas.js";

const signal = new AbortController().signal;
const HOUR = 3_600_000;
let sandboxes: SandboxSet;
let networks: string[];
let task: string | null;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
  networks = [];
  task = null;
  const setNetwork = (network: string) => {
    if (network.includes("@npm"))
      throw new BrigError("it was created without an allow-list", { code: "policy.not-enforced" });
    networks.push(network);
  };
  sandboxes = new SandboxSet({
    capacity: new Capacity({ maxPlaces: 100, maxPerClient: 100, maxWaiting: 0 }),
    open: async () => ({
      sandbox: { setNetwork } as unknown as Sandbox,
      ...{ image: "i", mode: "workspace-write", network: "none", task, instruction: null },
      ...{ workingDirectory: "/", grade: null, onEnding: null, close: async () => null },
    }),
    ...{ idleMs: 100 * HOUR, maxLifeMs: HOUR, onWarning: () => undefined },
  });
});

afterEach(async () => {
  await sandboxes.close();
  vi.useRealTimers();
});

const create = async (options: RemoteSandboxOptions = {}) =>
  await sandboxes.create("one", options, { signal });
const ids = (labels: string[]) => sandboxes.of("one", { labels }).map(({ id }) => id);

describe("labels", () => {
  it("are in the record, and find the sandboxes that have all of them", async () => {
    const a = await create({ labels: { team: "x", run: "1=2" } });
    const b = await create({ labels: { team: "x" } });
    const c = await create();
    expect([a.labels, c.labels]).toEqual([{ team: "x", run: "1=2" }, {}]);
    expect(ids([])).toEqual([a.id, b.id, c.id]);
    expect(ids(["team=x"])).toEqual([a.id, b.id]);
    expect(ids(["team=x", "run=1=2"])).toEqual([a.id]);
    expect(ids(["team=x", "team=y"])).toEqual([]);
    expect(ids(["toString=x"])).toEqual([]);
    expect(sandboxes.of("two", { labels: ["team=x"] })).toEqual([]);
  });

  it("are only so many, and only so long", () => {
    const problem = (labels: Record<string, unknown>) =>
      createSandboxSchema.safeParse({ labels }).error?.issues[0];
    expect(problem({ "a.b/c d": "any text\n" })).toBeUndefined();
    const many = Object.fromEntries(Array.from({ length: 65 }, (_, index) => [`${index}`, ""]));
    expect(problem(many)?.message).toBe("a sandbox may have at most 64 labels");
    expect(problem({ a: "x".repeat(257) })?.message).toContain("at most 256 characters");
    for (const wrong of [{ "a=b": "x" }, { "": "x" }, { ["x".repeat(129)]: "x" }, { a: 1 }])
      expect(problem(wrong), JSON.stringify(wrong)).toMatchObject({
        path: ["labels", Object.keys(wrong)[0]],
      });
  });

  it("are asked for once or several times", () => {
    const parsed = (query: unknown) => listSandboxesSchema.safeParse(query).data?.label;
    expect(parsed({ label: "a=b" })).toEqual(["a=b"]);
    expect(parsed({ label: ["a=b", "c="] })).toEqual(["a=b", "c="]);
    for (const wrong of [{ label: "a" }, { label: "=a" }, { label: ["a=b", "c"] }, { labels: "a=b" }])
      expect(listSandboxesSchema.safeParse(wrong).success, JSON.stringify(wrong)).toBe(false);
    expect(listSandboxesSchema.safeParse({}).success).toBe(true);
  });
});

describe("an extension", () => {
  it("says anew when the sandbox expires, later or earlier", async () => {
    const { id } = await create({ maxLifeMs: 1000 });
    await vi.advanceTimersByTimeAsync(600);
    sandboxes.get("one", id).extend(5000);
    expect(sandboxes.get("one", id).record.expiresAt).toBe(new Date(Date.now() + 5000).toISOString());
    await vi.advanceTimersByTimeAsync(4900);
    expect(sandboxes.find("one", id)).not.toBeNull();
    sandboxes.get("one", id).extend(50);
    await vi.advanceTimersByTimeAsync(51);
    expect(() => sandboxes.get("one", id)).toThrow("there is no such sandbox");
  });

  it("never lets it live longer than the service's longest life, counted from its start", async () => {
    const { id, createdAt } = await create({ maxLifeMs: 1000 });
    await vi.advanceTimersByTimeAsync(900);
    sandboxes.get("one", id).extend(30 * 24 * HOUR);
    const { expiresAt } = sandboxes.get("one", id).record;
    expect(Date.parse(expiresAt) - Date.parse(createdAt)).toBe(HOUR);
    await vi.advanceTimersByTimeAsync(HOUR);
    expect(sandboxes.find("one", id)).toBeNull();
  });
});

describe("the network", () => {
  const put = async (network: string, { allowsNetwork = true } = {}) => {
    const { id } = await create();
    const calls = settingCalls(sandboxes, { allowsNetwork });
    const call = { client: "one", id, body: { network } } as Parameters<typeof calls.setNetwork>[0];
    return await calls.setNetwork(call);
  };

  it("is replaced, and is in the record as brig writes it", async () => {
    expect(await put("allowlist:Example.COM, a.org")).toMatchObject({
      value: { network: "allowlist:example.com,a.org" },
    });
    expect(await put("allowlist:")).toMatchObject({ value: { network: "none" } });
    expect(networks).toEqual(["allowlist:Example.COM, a.org", "allowlist:"]);
  });

  it("has no address of the service's machine, its loopback or its metadata service", async () => {
    const own = Object.values(networkInterfaces()).flatMap((all) => all ?? []);
    const { address } = own.find(({ family, internal }) => family === "IPv4" && !internal) ?? own[0]!;
    for (const host of [
      ...["127.0.0.1", "127.0.0.1:8017", "[::1]:80", "[::ffff:127.0.0.1]", "127.1.2.3/32"],
      ...["0.0.0.0", "169.254.169.254:80", address, `a.org,${address}:22`],
    ])
      await expect(put(`allowlist:${host}`), host).rejects.toMatchObject({ code: "policy.invalid" });
    expect(networks).toEqual([]);
    await put("allowlist:10.0.0.0/8,8.8.8.8");
    expect(networks).toHaveLength(1);
  });

  it("is not replaced where it cannot, nor for a task, nor by a service without networks", async () => {
    await expect(put("allowlist:@npm")).rejects.toMatchObject({ status: 409, code: "policy.not-enforced" });
    await expect(put("allowlist:a.org", { allowsNetwork: false })).rejects.toThrow("--allow-network");
    task = "t";
    await expect(put("allowlist:a.org")).rejects.toMatchObject({ code: "usage.invalid" });
    expect(networks).toEqual([]);
  });
});

describe("the sandboxes of an earlier service", () => {
  it("are answered with 503 until they are there, to their own client only", () => {
    const expected = sandboxes.expect("one", "x");
    expect(() => sandboxes.get("one", "x")).toThrow(
      expect.objectContaining({ status: 503, code: "serve.busy" }),
    );
    expect(() => sandboxes.get("two", "x")).toThrow(expect.objectContaining({ code: "serve.unknown" }));
    expected[Symbol.dispose]();
    expect(() => sandboxes.get("one", "x")).toThrow(expect.objectContaining({ code: "serve.unknown" }));
  });

  it("were created when they were, and expire when they would have", async () => {
    const since = {
      createdAt: new Date("2020-01-01T00:00:00.000Z"),
      expiresAt: new Date(Date.now() + 1000),
    };
    const { record } = sandboxes.add({
      ...{ id: "x", client: "one", env: {}, idleMs: HOUR, maxLifeMs: HOUR, since },
      opened: {
        sandbox: {} as Sandbox,
        ...{ image: "i", mode: "workspace-write", network: "none", task, instruction: null },
        ...{ workingDirectory: "/", grade: null, onEnding: null, close: async () => null },
      },
      seat: { [Symbol.dispose]: () => undefined },
    });
    expect(record).toMatchObject({
      createdAt: "2020-01-01T00:00:00.000Z",
      expiresAt: since.expiresAt.toISOString(),
    });
    await vi.advanceTimersByTimeAsync(999);
    expect(sandboxes.find("one", "x")).not.toBeNull();
    await vi.advanceTimersByTimeAsync(1);
    expect(sandboxes.find("one", "x")).toBeNull();
  });
});
