import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { boundedLookups } from "../../../../src/sandbox/egress/open-egress.js";

/** A name server that answers when it is told to. */
function heldServer() {
  const waiting = new Map<string, () => void>();
  const asked: string[] = [];
  return {
    asked,
    resolve: async (name: string) => {
      asked.push(name);
      await new Promise<void>((resolve) => waiting.set(name, resolve));
      return ["192.0.2.1"];
    },
    answer: async (name: string) => {
      waiting.get(name)?.();
      waiting.delete(name);
      await sleep(1);
    },
  };
}

describe("lookups for a sandbox", () => {
  it("run one at a time, and at most two of all sandboxes, so that slow names block no others of the process", async () => {
    const server = heldServer();
    const [hostile, other, third] = [1, 2, 3].map(() =>
      boundedLookups(server.resolve, { timeoutMs: 60_000 }),
    );
    const all = [
      ...["slow-1", "slow-2", "slow-3"].map((name) => hostile?.(name)),
      ...["mine", "next"].map((name) => other?.(name)),
      third?.("third"),
    ];
    await sleep(1);
    expect(server.asked).toEqual(["slow-1", "mine"]);
    await server.answer("mine");
    expect(server.asked).toEqual(["slow-1", "mine", "third"]);
    await server.answer("third");
    expect(server.asked).toEqual(["slow-1", "mine", "third", "next"]);
    for (const name of ["next", "slow-1", "slow-2", "slow-3"]) await server.answer(name);
    expect(await Promise.all(all)).toEqual(all.map(() => ["192.0.2.1"]));
  });

  it("ask once for all who wait for the same name", async () => {
    const server = heldServer();
    const lookUp = boundedLookups(server.resolve, { timeoutMs: 60_000 });
    const all = [lookUp("a"), lookUp("a"), lookUp("a")];
    await sleep(1);
    await server.answer("a");
    expect(await Promise.all(all)).toEqual([["192.0.2.1"], ["192.0.2.1"], ["192.0.2.1"]]);
    expect(server.asked).toEqual(["a"]);
  });

  it("fail with ETIMEDOUT when they take too long, also those that have not begun", async () => {
    const server = heldServer();
    const lookUp = boundedLookups(server.resolve, { timeoutMs: 20 });
    const results = await Promise.allSettled([lookUp("slow"), lookUp("waits")]);
    expect(results).toMatchObject([{ reason: { code: "ETIMEDOUT" } }, { reason: { code: "ETIMEDOUT" } }]);
    expect(server.asked).toEqual(["slow"]);
    await server.answer("slow");
    const again = boundedLookups(async () => ["192.0.2.2"], { timeoutMs: 60_000 });
    expect(await again("fine")).toEqual(["192.0.2.2"]);
  });
});
