import { describe, expect, it } from "vitest";
import { PathLocks } from "../../../../src/tools/apply-patch/path-locks.js";

describe("PathLocks", () => {
  it("runs actions on different paths together", async () => {
    const locks = new PathLocks();
    const gate = deferred();
    const first = locks.run(["/a"], () => gate.promise);
    await locks.run(["/b"], async () => undefined);
    gate.resolve();
    await first;
  });

  it("runs actions that share a path in the order of their calls", async () => {
    const locks = new PathLocks();
    const order: string[] = [];
    const gate = deferred();
    const act = (name: string, until?: Promise<void>) => async () => {
      order.push(`${name} starts`);
      await until;
      order.push(`${name} ends`);
    };
    const all = [
      locks.run(["/a", "/b"], act("1", gate.promise)),
      locks.run(["/b", "/c"], act("2")),
      locks.run(["/c"], act("3")),
      locks.run(["/d"], act("4")),
    ];
    await all[3];
    gate.resolve();
    await Promise.all(all);
    expect(order).toEqual([
      "1 starts",
      "4 starts",
      "4 ends",
      "1 ends",
      "2 starts",
      "2 ends",
      "3 starts",
      "3 ends",
    ]);
  });

  it("lets the next one run after a failure", async () => {
    const locks = new PathLocks();
    const failing = locks.run(["/a"], () => Promise.reject(new Error("no")));
    const next = locks.run(["/a"], async () => "yes");
    await expect(failing).rejects.toThrow("no");
    expect(await next).toBe("yes");
  });
});

function deferred() {
  let resolve: () => void = () => undefined;
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
