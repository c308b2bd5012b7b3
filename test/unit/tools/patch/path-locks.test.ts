import { describe, expect, it } from "vitest";
import { PathLocks } from "../../../../src/tools/patch/path-locks.js";

const asWritten = async () => [];

describe("PathLocks", () => {
  it("runs actions on different paths together", async () => {
    const locks = new PathLocks(asWritten);
    const gate = deferred();
    const first = locks.run(["/a"], () => gate.promise);
    await locks.run(["/b"], async () => undefined);
    gate.resolve();
    await first;
  });

  it("runs actions that share a path in the order of their calls", async () => {
    const locks = new PathLocks(asWritten);
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

  it("knows a file by whatever name, and does not look a lone one up", async () => {
    const asked: string[][] = [];
    const locks = new PathLocks(async (paths) => {
      asked.push([...paths]);
      return paths.map((path) => path.replace("/link", "/real"));
    });
    const gate = deferred();
    const order: string[] = [];
    const first = locks.run(["/real/file"], () => gate.promise);
    expect(asked).toEqual([]);
    const second = locks.run(["/link/file"], async () => order.push("second"));
    const third = locks.run(["/link/other"], async () => order.push("third"));
    const fourth = locks.run(["/link"], async () => order.push("fourth"));
    await third;
    gate.resolve();
    await Promise.all([first, second, fourth]);
    expect(order).toEqual(["third", "second", "fourth"]);
  });

  it("takes paths that cannot be looked up as they are written", async () => {
    const locks = new PathLocks(() => Promise.reject(new Error("gone")));
    const gate = deferred();
    const first = locks.run(["/a"], () => gate.promise);
    await locks.run(["/b"], async () => undefined);
    const again = locks.run(["/a"], async () => "after");
    gate.resolve();
    await first;
    expect(await again).toBe("after");
  });

  it("lets the next one run after a failure", async () => {
    const locks = new PathLocks(asWritten);
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
