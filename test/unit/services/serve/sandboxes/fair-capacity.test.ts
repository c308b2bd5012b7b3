import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { busy } from "../../../../../src/services/serve/http/refusal.js";
import type { ClientQuota } from "../../../../../src/services/serve/http/served-client.js";
import { Capacity } from "../../../../../src/services/serve/sandboxes/capacity.js";
import type { MachineRoom, Need } from "../../../../../src/services/serve/sandboxes/machine-room.js";

const { signal } = new AbortController();
const need = (memoryMb: number, cpus = 1): Need => ({ cpus, memoryMb, limits: { cpus, memoryMb } });
const settled = async () => await new Promise((resolve) => setImmediate(resolve));

/** A machine with so much memory. */
function machineOf(memoryMb: number): MachineRoom {
  return {
    refuseTooMuch: async () => undefined,
    async shortage(wanted, taken) {
      const used = taken.reduce((sum, one) => sum + one.need.memoryMb, 0);
      return used + wanted.memoryMb <= memoryMb ? null : busy("no room", { status: 429, retrySeconds: 1 });
    },
  };
}

/** Asks for places one after the other, and notes who got one in which order. */
class Queue {
  readonly given: string[] = [];
  readonly places = new Map<string, Disposable[]>();
  readonly #capacity: Capacity;

  constructor(capacity: Capacity) {
    this.#capacity = capacity;
  }

  async ask(client: string, wanted = need(0)): Promise<void> {
    void this.#capacity
      .take(client, { waitMs: 60_000, signal, need: wanted })
      .then((place) => {
        this.given.push(client);
        this.places.set(client, [...(this.places.get(client) ?? []), place]);
      })
      .catch(() => undefined);
    await settled();
  }

  async leave(client: string): Promise<void> {
    this.places.get(client)?.shift()?.[Symbol.dispose]();
    await settled();
  }
}

describe("the next place", () => {
  it("is that of the client that has the fewest, whoever asked first", async () => {
    const queue = new Queue(new Capacity({ maxPlaces: 3, maxPerClient: 3, maxWaiting: 100 }));
    for (let count = 0; count < 9; count++) await queue.ask("greedy");
    await queue.ask("modest");
    await queue.leave("greedy");
    expect(queue.given).toEqual(["greedy", "greedy", "greedy", "modest"]);
    await queue.ask("third");
    await queue.leave("greedy");
    expect(queue.given.at(-1)).toBe("third");
  });

  it("never goes to a client that has more than another one that waits, and everybody gets one in the end", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 4 }),
        fc.array(fc.constantFrom("a", "b", "c", "d"), { minLength: 1, maxLength: 40 }),
        fc.array(fc.nat(), { maxLength: 60 }),
        async (maxPlaces, asks, ends) => {
          const queue = new Queue(new Capacity({ maxPlaces, maxPerClient: maxPlaces, maxWaiting: 1000 }));
          const waiting = new Map<string, number>();
          for (const client of asks) {
            waiting.set(client, (waiting.get(client) ?? 0) + 1);
            await queue.ask(client);
          }
          for (const client of queue.given) waiting.set(client, (waiting.get(client) ?? 0) - 1);
          // Sandboxes end in any order, and all end.
          for (const end of [...ends, ...asks.map((_, at) => at), ...asks.map((_, at) => at)]) {
            const holding = [...queue.places].filter(([, places]) => places.length > 0);
            const [leaving] = holding[end % Math.max(1, holding.length)] ?? [];
            if (leaving === undefined) break;
            const before = queue.given.length;
            const counts = new Map(holding.map(([client, places]) => [client, places.length]));
            counts.set(leaving, (counts.get(leaving) ?? 0) - 1);
            await queue.leave(leaving);
            for (const client of queue.given.slice(before)) {
              const ofOthers = [...waiting]
                .filter(([, count]) => count > 0)
                .map(([one]) => counts.get(one) ?? 0);
              expect(counts.get(client) ?? 0).toBe(Math.min(...ofOthers));
              waiting.set(client, (waiting.get(client) ?? 0) - 1);
            }
          }
          expect(queue.given.length).toBe(asks.length);
        },
      ),
      { numRuns: 60 },
    );
  });

  it("is not kept from others by one that needs more room than there is, and is its own in the end", async () => {
    const limits = { maxPlaces: 100, maxPerClient: 100, maxWaiting: 100 };
    const queue = new Queue(new Capacity(limits, { room: machineOf(100) }));
    for (let count = 0; count < 5; count++) await queue.ask("small", need(20));
    await queue.ask("large", need(90));
    for (let count = 0; count < 60; count++) await queue.ask("small", need(20));
    let passed = 0;
    while (!queue.given.includes("large") && passed < 100) {
      await queue.leave("small");
      passed++;
    }
    expect(queue.given.includes("large")).toBe(true);
    // Others went before it, but not for ever.
    expect(queue.given.length - 6).toBeGreaterThan(8);
    expect(queue.given.length - 6).toBeLessThan(30);
  });
});

describe("those who wait", () => {
  it("are sent away from the client that has most of them", async () => {
    const capacity = new Capacity({ maxPlaces: 1, maxPerClient: 1, maxWaiting: 3 });
    await capacity.take("first", { waitMs: 0, signal });
    const greedy = [1, 2, 3].map(() => capacity.take("greedy", { waitMs: 60_000, signal }));
    for (const one of greedy) one.catch(() => undefined);
    await settled();
    const abort = new AbortController();
    const modest = capacity.take("modest", { waitMs: 60_000, signal: abort.signal });
    await expect(greedy[2]).rejects.toMatchObject({ code: "serve.busy", status: 429 });
    expect(capacity.waitingCount).toBe(3);
    abort.abort(new Error("gone"));
    await expect(modest).rejects.toThrow("gone");
  });

  it("learn that the machine cannot be measured", async () => {
    const room: MachineRoom = {
      refuseTooMuch: async () => undefined,
      shortage: async () => await Promise.reject(new Error("the engine is gone")),
    };
    const capacity = new Capacity({ maxPlaces: 1, maxPerClient: 1, maxWaiting: 3 }, { room });
    for (const waitMs of [0, 60_000])
      await expect(capacity.take("a", { waitMs, signal })).rejects.toThrow("the engine is gone");
    expect([capacity.takenCount, capacity.waitingCount]).toEqual([0, 0]);
  });
});

describe("a client's quota", () => {
  const limits = { maxPlaces: 100, maxPerClient: 100, maxWaiting: 100 };
  const withQuota = (quota: ClientQuota) =>
    new Capacity(limits, { quotaOf: (client) => (client === "a" ? quota : {}) });
  const now = { waitMs: 0, signal };

  it("counts the processors and the memory of all its sandboxes, also of those that are asked for at once", async () => {
    const capacity = withQuota({ cpus: 4, memoryMb: 1000 });
    const asked = await Promise.allSettled(
      Array.from({ length: 20 }, () => capacity.take("a", { ...now, need: need(300, 1) })),
    );
    const got = asked.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    expect(got.length).toBe(3);
    await expect(capacity.take("a", { ...now, need: need(300) })).rejects.toMatchObject({
      ...{ code: "serve.busy", status: 429, message: expect.stringContaining("of memory, of ") },
    });
    await capacity.take("b", { ...now, need: need(5000, 50) });
    got[0]?.[Symbol.dispose]();
    await capacity.take("a", { ...now, need: need(300) });
    expect(capacity.usedBy("a")).toMatchObject({ places: 3, cpus: 3, memoryMb: 900 });
  });

  it("refuses at once what it never allows", async () => {
    const capacity = withQuota({ cpus: 4, memoryMb: 1000 });
    const never = { code: "serve.quota", status: 403 };
    await expect(capacity.take("a", { ...now, waitMs: 60_000, need: need(1001) })).rejects.toMatchObject(
      never,
    );
    await expect(capacity.take("a", { ...now, waitMs: 60_000, need: need(1, 5) })).rejects.toMatchObject(
      never,
    );
    const none = withQuota({ maxSandboxes: 0 });
    await expect(none.take("a", { ...now, waitMs: 60_000 })).rejects.toMatchObject(never);
  });

  it("does not keep others waiting behind it", async () => {
    const queue = new Queue(
      new Capacity({ ...limits, maxPlaces: 2 }, { quotaOf: () => ({ maxSandboxes: 1 }) }),
    );
    for (const client of ["a", "a", "a", "b"]) await queue.ask(client);
    expect(queue.given).toEqual(["a", "b"]);
  });
});
