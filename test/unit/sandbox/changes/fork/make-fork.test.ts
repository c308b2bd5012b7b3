import { describe, expect, it } from "vitest";
import { fillFork, readParent } from "../../../../../src/sandbox/changes/fork.js";
import { LiveChanges } from "../../../../../src/sandbox/changes/live-changes.js";
import { added, deleted, playedTree, recordsIn } from "../../overlay/played-tree.js";
import { copyState } from "./copy-state.js";

const GIB = 1024n ** 3n;
const signal = undefined;

async function parentWith(records: readonly Buffer[]) {
  const tree = await playedTree();
  tree.scans = [{ records, startedNs: 77n }];
  return await readParent(new LiveChanges(tree), signal);
}

describe("the state of a fork's parent", () => {
  it("is all that it has changed, and when that was read", async () => {
    const parent = await parentWith([added("a"), deleted("b")]);
    expect(parent.readNs).toBe(77n);
    expect(parent.changes).toMatchObject([
      { change: "added", base: { state: null, unchangedNs: 50n } },
      { change: "deleted" },
    ]);
  });

  it("cannot be read once the signal is aborted", async () => {
    const tree = await playedTree();
    const reading = readParent(new LiveChanges(tree), AbortSignal.abort(new Error("stop")));
    await expect(reading).rejects.toThrow("stop");
  });
});

describe("a new fork", () => {
  it("gets what its parent has, except for pipes and stages", async () => {
    const parent = await parentWith([
      added(".brig-stage-1/x"),
      added("a", { size: 5n, mode: 0o4755, uid: 7, gid: 8, modifiedNs: 9n }),
      added("d", { type: 2, mode: 0o700, size: 4096n }),
      deleted("e"),
      added("f", { type: 4 }),
      added("l", { type: 3, target: "to" }),
    ]);
    const keeper = await playedTree();
    const states = [
      copyState({ ino: 1n, size: 4n, changedNs: 2n }),
      ...[copyState(), copyState()],
      copyState({ ino: 3n, changedNs: 4n }),
    ];
    keeper.answer = () => ({
      output: states,
      result: Buffer.from("0500000000000000ffffffff00000000", "hex"),
    });
    const fork = await fillFork(keeper.context, parent, { signal });
    expect([...fork.entries.keys()]).toEqual(["a", "d", "e", "l"]);
    expect([...fork.own]).toEqual([
      ["a", { type: "file", ino: 1n, sizeBytes: 4, changedNs: 2n }],
      ["l", { type: "symlink", ino: 3n, sizeBytes: 0, changedNs: 4n }],
    ]);
    const [sent] = keeper.files.requests;
    expect(sent).toMatchObject({ operation: "copy", path: Buffer.from("/merged"), length: 10n * GIB });
    expect(sent?.second.toString("latin1").startsWith("/from\0")).toBe(true);
    const records = sent ? recordsIn(sent) : [];
    expect(
      records.map(
        ({ action, path, expects, mode, owner }) =>
          `${action} ${path} ${expects} ${mode.toString(8)} ${owner}`,
      ),
    ).toEqual(["put a any 4755 7:8", "mkdir d any 700 0:0", "remove e any 0 null", "symlink l any 0 0:0"]);
    expect(records[0]?.modifiedNs).toBe(9n);
    const sizes = records.map(({ path }) => sent?.second.indexOf(path, sent.second.indexOf(0)) ?? 0);
    // A file may have grown since the scan, and is copied up to the size that it had.
    expect(sizes.map((at) => sent?.second.readBigUInt64LE(at - 72 + 48))).toEqual([5n, 0n, 0n, 0n]);
  });

  it("is without what its parent no longer has", async () => {
    const parent = await parentWith([added("a"), added("b")]);
    const keeper = await playedTree();
    const output = [copyState({ outcome: 2 }), copyState({ ino: 5n })];
    keeper.answer = () => ({ output, result: Buffer.from("0000000000000000ffffffff00000000", "hex") });
    const fork = await fillFork(keeper.context, parent, { signal });
    expect([...fork.entries.keys()]).toEqual(["b"]);
    expect([...fork.own.keys()]).toEqual(["b"]);
  });

  it("of nothing asks for nothing", async () => {
    const keeper = await playedTree();
    const fork = await fillFork(keeper.context, await parentWith([]), { signal });
    expect([fork.entries.size, fork.own.size, keeper.done()]).toEqual([0, 0, []]);
  });

  it("cannot be made of too much", async () => {
    const parent = await parentWith([added("large", { size: 2048n })]);
    const keeper = await playedTree();
    keeper.answer = () => ({ errno: 27 });
    await expect(fillFork(keeper.context, parent, { signal })).rejects.toMatchObject({
      code: "file.too-large",
      message: expect.stringMatching(/more than 10.* GiB; one of them is "large"/),
      hint: expect.stringContaining("remove large files"),
    });
    keeper.answer = () => ({ errno: 28 });
    await expect(fillFork(keeper.context, parent, { signal })).rejects.toMatchObject({ errno: "ENOSPC" });
    const stop = AbortSignal.abort(new Error("stop"));
    await expect(fillFork(keeper.context, parent, { signal: stop })).rejects.toThrow("stop");
  });
});
