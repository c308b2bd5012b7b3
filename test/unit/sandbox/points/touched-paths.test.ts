import { describe, expect, it } from "vitest";
import { LiveChanges } from "../../../../src/sandbox/changes/live-changes.js";
import { TouchedPaths, type TouchedScan } from "../../../../src/sandbox/points/touched-paths.js";
import { leftOutOf } from "../../../../src/sandbox/tree/tree-changes.js";
import { added, deleted, modified, type PlayedScan, playedTree, same } from "../overlay/played-tree.js";

async function touchedIn(...scans: PlayedScan[]) {
  const tree = await playedTree();
  tree.scans = scans;
  const changes = new LiveChanges(tree);
  return { tree, changes, touched: new TouchedPaths(changes) };
}

/** A scan that leaves out these paths of an earlier one. */
const without = (records: readonly Buffer[], { all }: TouchedScan, keys: readonly string[]): PlayedScan => {
  const { count, sha256 } = leftOutOf(keys.flatMap((key) => all.get(key) ?? []));
  return { records, leftOut: BigInt(count), sha256, startedNs: 200n };
};

const linesOf = ({ all, recent, vanished }: TouchedScan) => ({
  all: [...all.keys()].join(" "),
  recent: recent.map(({ path }) => path.toString("latin1")).join(" "),
  vanished: vanished.join(" "),
});

describe("the first scan", () => {
  it("reports everything as recent", async () => {
    const { tree, changes, touched } = await touchedIn({ records: [added("a"), same("b")], startedNs: 70n });
    const scan = await touched.scan({});
    expect(linesOf(scan)).toEqual({ all: "a b", recent: "a b", vanished: "" });
    expect(scan.startedNs).toBe(70n);
    expect(changes.scannedNs).toBe(70n);
    expect(tree.files.requests.map(({ offset, flags }) => [offset, flags])).toEqual([[0n, 2]]);
  });

  it("is made again until its paths were stored", async () => {
    const { tree, touched } = await touchedIn({ records: [added("a")] });
    await touched.scan({});
    expect(linesOf(await touched.scan({})).recent).toBe("a");
    expect(tree.files.requests.every(({ offset }) => offset === 0n)).toBe(true);
  });
});

describe("a scan after that", () => {
  it("asks only for what has changed since, and knows the rest", async () => {
    const { tree, changes, touched } = await touchedIn({
      records: [added("a", { ino: 1n }), deleted("c"), same("d", { ino: 2n })],
    });
    const first = await touched.scan({});
    touched.accept(first);
    tree.scans = [without([added("b"), added("d", { ino: 2n })], first, ["a", "c"])];
    const scan = await touched.scan({});
    expect(linesOf(scan)).toEqual({ all: "a b c d", recent: "b d", vanished: "" });
    expect(scan.all.get("d")?.change).toBe("added");
    expect(scan.startedNs).toBe(200n);
    expect(changes.scannedNs).toBe(200n);
    expect(tree.files.requests.map(({ offset }) => offset)).toEqual([0n, 100n]);
  });

  it("has all paths in the order of their bytes, also new ones", async () => {
    const { tree, touched } = await touchedIn({ records: [added("b"), added("\xff")] });
    const first = await touched.scan({});
    touched.accept(first);
    tree.scans = [without([added("a"), added("b"), added("c\xe9")], first, ["\xff"])];
    expect(linesOf(await touched.scan({})).all).toBe("a b c\xe9 \xff");
  });

  it.each([
    ["a path has vanished", []],
    ["another path was moved there", [added("a", { ino: 9n })]],
  ])("looks at everything if %s", async (_name, others) => {
    const { tree, changes, touched } = await touchedIn({ records: [added("a", { ino: 1n }), added("b")] });
    const first = await touched.scan({});
    touched.accept(first);
    const { count, sha256 } = leftOutOf([]);
    tree.scans = [
      { records: [], leftOut: BigInt(count + others.length), sha256, startedNs: 200n },
      { records: [...others, added("b")], startedNs: 300n },
    ];
    const scan = await touched.scan({});
    expect(linesOf(scan)).toEqual(
      others.length === 0
        ? { all: "b", recent: "", vanished: "a" }
        : { all: "a b", recent: "a", vanished: "" },
    );
    expect(tree.files.requests.map(({ offset }) => offset)).toEqual([0n, 100n, 0n]);
    expect(changes.scannedNs).toBe(300n);
  });

  it("is not believed if only the hash or only the number of what it leaves out is right", async () => {
    for (const wrong of [{ leftOut: 1n }, { sha256: "11".repeat(32) }]) {
      const { tree, touched } = await touchedIn({ records: [added("a")] });
      const first = await touched.scan({});
      touched.accept(first);
      const records = [added("a")];
      tree.scans = [{ ...without(records, first, []), ...wrong }, { records }];
      await touched.scan({});
      expect(tree.done()).toHaveLength(3);
    }
  });

  it("fails with the signal's reason", async () => {
    const { touched } = await touchedIn({ records: [added("a")] });
    const signal = AbortSignal.abort(new Error("stop"));
    await expect(touched.scan({ signal })).rejects.toThrow("stop");
    touched.accept(await touched.scan({}));
    await expect(touched.scan({ signal })).rejects.toThrow("stop");
    await expect(touched.scanAll({ signal })).rejects.toThrow("stop");
  });
});

describe("a scan of everything", () => {
  const file = { ino: 1n, changedNs: 99n };

  async function recentOf(
    now: Buffer,
    { earlier = added("a", file), doubtNs }: { earlier?: Buffer; doubtNs?: bigint } = {},
  ) {
    const { tree, touched } = await touchedIn({ records: [earlier], startedNs: 100n });
    touched.accept(await touched.scan({}));
    tree.scans = [{ records: [now] }];
    return linesOf(await touched.scanAll(doubtNs === undefined ? {} : { doubtNs })).recent;
  }

  it.each<[string, Buffer, string]>([
    ["is as it was", added("a", file), ""],
    ["is another file", added("a", { ...file, ino: 2n }), "a"],
    ["has another time", added("a", { ...file, changedNs: 98n }), "a"],
    ["is as the host's now", same("a", file), "a"],
    ["is gone", deleted("a"), "a"],
  ])("reports as recent what may have changed: a file that %s", async (_name, now, recent) => {
    expect(await recentOf(now)).toBe(recent);
  });

  it("takes a deleted path for unchanged if it was one", async () => {
    expect(await recentOf(deleted("a"), { earlier: deleted("a") })).toBe("");
    expect(await recentOf(modified("a"), { earlier: deleted("a") })).toBe("a");
  });

  it("doubts a file that was changed within the tick of the last scan", async () => {
    const late = added("a", { ...file, changedNs: 100n });
    expect(await recentOf(late, { earlier: late })).toBe("a");
  });

  it("doubts files that were changed not long before, if asked to", async () => {
    expect(await recentOf(added("a", file), { doubtNs: 0n })).toBe("");
    expect(await recentOf(added("a", file), { doubtNs: 1n })).toBe("a");
  });
});
