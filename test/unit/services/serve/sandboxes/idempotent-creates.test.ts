import { beforeEach, describe, expect, it } from "vitest";
import {
  IdempotentCreates,
  type KnownKey,
} from "../../../../../src/services/serve/sandboxes/idempotent-creates.js";
import type { RemoteSandboxRecord } from "../../../../../src/services/serve/wire/schemas.js";

const there = new Map<string, RemoteSandboxRecord>();
let creates: IdempotentCreates;
let begun: { end(error?: Error): void; signal: AbortSignal }[];

beforeEach(() => {
  there.clear();
  begun = [];
  creates = new IdempotentCreates((client, id) => there.get(`${client}/${id}`) ?? null);
});

/** A create that ends when the test says so. */
function run(
  body: unknown,
  { client = "one", key = "k", signal = new AbortController().signal } = {},
): Promise<RemoteSandboxRecord> {
  return creates.run({ client, key, body, signal }, async (until) => {
    const id = `${begun.length}`;
    await new Promise<void>((resolve, reject) => {
      begun.push({ end: (error) => (error ? reject(error) : resolve()), signal: until });
    });
    until.throwIfAborted();
    const record = { id } as RemoteSandboxRecord;
    there.set(`${client}/${id}`, record);
    return record;
  });
}

async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

describe("a key for creates", () => {
  it("gives the same sandbox again, whatever the order of the fields", async () => {
    const first = run({ image: "a", env: { A: "1", B: "2" } });
    begun[0]?.end();
    expect((await first).id).toBe("0");
    expect((await run({ env: { B: "2", A: "1" }, image: "a" })).id).toBe("0");
    expect(begun.length).toBe(1);
  });

  it("gives it to requests that come while it is created", async () => {
    const both = [run({}), run({})];
    await turn();
    expect(begun.length).toBe(1);
    begun[0]?.end();
    expect((await Promise.all(both)).map(({ id }) => id)).toEqual(["0", "0"]);
  });

  it("is refused with another body, also while the first create runs", async () => {
    const first = run({ image: "a" });
    await expect(run({ image: "b" })).rejects.toMatchObject({ status: 409, code: "usage.invalid" });
    begun[0]?.end();
    await first;
    await expect(run({ image: "b" })).rejects.toMatchObject({ status: 409 });
  });

  it("is one client's own", async () => {
    const first = run({ image: "a" });
    const others = run({ image: "b" }, { client: "two" });
    for (const one of begun) one.end();
    expect([(await first).id, (await others).id]).toEqual(["0", "1"]);
  });

  it("is free again when its sandbox is gone", async () => {
    const first = run({ image: "a" });
    begun[0]?.end();
    await first;
    there.clear();
    const second = run({ image: "b" });
    begun[1]?.end();
    expect((await second).id).toBe("1");
  });

  it("is free again when its create has failed, of which everybody is told who waited", async () => {
    const both = [run({}), run({})];
    await turn();
    begun[0]?.end(new Error("no image"));
    for (const one of both) await expect(one).rejects.toThrow("no image");
    const third = run({ image: "other" });
    begun[1]?.end();
    expect((await third).id).toBe("1");
  });

  it("is kept by a request that still waits when the first one has gone", async () => {
    const gone = new AbortController();
    const first = run({}, { signal: gone.signal });
    const second = run({});
    gone.abort(new Error("gone"));
    await expect(first).rejects.toThrow("gone");
    expect(begun[0]?.signal.aborted).toBe(false);
    begun[0]?.end();
    expect((await second).id).toBe("0");
  });

  it("ends its create when nobody waits any more, and the next request begins another one after that", async () => {
    const gone = new AbortController();
    const first = run({}, { signal: gone.signal });
    first.catch(() => undefined);
    gone.abort(new Error("gone"));
    await turn();
    expect(begun[0]?.signal.aborted).toBe(true);
    const second = run({ image: "other" });
    await turn();
    expect(begun.length).toBe(1);
    begun[0]?.end();
    await expect(first).rejects.toThrow("gone");
    await turn();
    begun[1]?.end();
    expect((await second).id).toBe("1");
  });

  it("is known of a sandbox that an earlier service has created, with the body that it came with", async () => {
    let given: KnownKey | undefined;
    const record = { id: "x" } as RemoteSandboxRecord;
    const request = { client: "one", key: "k", body: { image: "a" }, signal: new AbortController().signal };
    await creates.run(request, async (_until, key) => {
      given = key;
      return record;
    });
    there.set("one/x", record);
    const later = new IdempotentCreates((client, id) => there.get(`${client}/${id}`) ?? null);
    later.restore("one", given as KnownKey, record);
    const never = async () => await Promise.reject(new Error("it is there already"));
    expect(await later.run(request, never)).toBe(record);
    await expect(later.run({ ...request, body: {} }, never)).rejects.toMatchObject({ status: 409 });
  });

  it("takes no memory once its sandbox has ended", async () => {
    for (let index = 0; index < 50; index++) {
      const created = run({}, { key: `${index}` });
      begun[index]?.end();
      await created;
      there.clear();
    }
    expect(creates.size).toBe(1);
  });
});
