import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { PathLocks, realPaths } from "../../../../src/tools/patch/path-locks.js";
import { hostFiles } from "../../../support/host-files.js";

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

const root = realpathSync(mkdtempSync(join(tmpdir(), "brig-real-paths-")));
mkdirSync(join(root, "a/deep"), { recursive: true });
writeFileSync(join(root, "a/file"), "");
symlinkSync("a", join(root, "relative"));
symlinkSync(join(root, "relative/deep"), join(root, "absolute"));
symlinkSync("../file", join(root, "a/deep/up"));
symlinkSync("not-there/yet", join(root, "dangling"));
symlinkSync("circle", join(root, "circle"));

afterAll(() => {
  rmSync(root, { recursive: true });
});

const real = async (...names: string[]) =>
  (
    await realPaths(
      hostFiles,
      names.map((name) => join(root, name)),
    )
  ).map((path) => path.replace(`${root}/`, ""));

describe("where a path leads", () => {
  it.each([
    ["a/file", ["a/file"]],
    ["relative/file", ["relative", "a/file"]],
    ["absolute/up", ["absolute", "relative", "a/deep/up", "a/file"]],
    ["absolute/new/file", ["absolute", "relative", "a/deep/new/file"]],
    ["dangling", ["dangling", "not-there/yet"]],
    ["a/file/below", ["a/file/below"]],
    ["none/at/all", ["none/at/all"]],
  ])("%s leads to, and by way of, %j", async (name, expected) => {
    expect(await real(name)).toEqual(expected);
  });

  it("is told for several at once, and a circle has an end", async () => {
    expect(await real("a/file", "relative/file")).toEqual(["a/file", "relative"]);
    expect(await real("circle")).toEqual(["circle"]);
  });

  it("is what the kernel says", async () => {
    const paths = await realPaths(hostFiles, [join(root, "absolute/up")]);
    expect(paths).toContain(realpathSync(join(root, "absolute/up")));
  });
});
