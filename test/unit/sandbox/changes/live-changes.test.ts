import { describe, expect, it } from "vitest";
import { LiveChanges } from "../../../../src/sandbox/changes/live-changes.js";
import { changesOf } from "../../../../src/sandbox/changes/take-snapshot.js";
import type { SeenChange, TouchedPath } from "../../../../src/sandbox/changes/workspace-change.js";
import type { ContentPiece } from "../../../../src/sandbox/files/file-request.js";
import { readResult } from "../channel/played-files.js";
import { added, deleted, entry, modified, playedTree, presentState, same } from "../overlay/played-tree.js";

const signal = undefined;
const present = (path: string, sizeBytes = 0): SeenChange => ({
  ...{ path: Buffer.from(path), change: "added", before: null, base: { state: null, unchangedNs: 0n } },
  now: presentState({ sizeBytes }),
});

async function seenBy(changes: LiveChanges): Promise<SeenChange[]> {
  const seen: SeenChange[] = [];
  await changes.scan({ onChanges: (some) => void seen.push(...some) });
  return seen;
}

describe("the changes of a sandbox", () => {
  it("are those of its tree, without what was only touched", async () => {
    const tree = await playedTree();
    tree.leftOut = ["x"];
    tree.scans = [{ records: [added("a"), same("b"), deleted("c")], startedNs: 70n, notEntered: 3n }];
    const changes = new LiveChanges(tree);
    const seen: string[] = [];
    expect(changes.workspace).toBe("/repo");
    expect(changes.scannedNs).toBe(50n);
    expect(
      await changes.scan({ onChanges: (some) => void seen.push(...some.map(({ path }) => `${path}`)) }),
    ).toEqual({
      startedNs: 70n,
      notEntered: 3,
    });
    expect(seen).toEqual(["a", "c"]);
    expect(changes.scannedNs).toBe(70n);
    const [sent] = tree.files.requests;
    expect(sent).toMatchObject({
      path: Buffer.from("/merged"),
      second: Buffer.from("/base\0/upper\0x\0"),
      flags: 0,
    });
  });

  it("keep the base that they had when they were first seen", async () => {
    const tree = await playedTree();
    const record = (ns: bigint) => modified("a", {}, { changedNs: ns, ino: ns });
    tree.scans = [{ records: [record(49n)], startedNs: 60n }, { records: [record(59n), added("b")] }];
    const changes = new LiveChanges(tree);
    expect((await seenBy(changes))[0]?.base).toMatchObject({ state: { ino: 49n }, unchangedNs: 50n });
    const [a, b] = await seenBy(changes);
    expect(a?.base).toMatchObject({ state: { ino: 49n }, unchangedNs: 50n });
    expect(a?.before).toMatchObject({ ino: 59n });
    expect(b?.base).toEqual({ state: null, unchangedNs: 60n });
    expect(changes.baseOf(Buffer.from("b"))).toEqual({ state: null, unchangedNs: 60n });
    expect(changes.baseOf(Buffer.from("c"))).toBeUndefined();
  });

  it("have no known base where the host has changed it since the last scan", async () => {
    const tree = await playedTree();
    tree.scans = [
      { records: [modified("a", {}, { changedNs: 50n }), modified("b", {}, { changedNs: 51n })] },
    ];
    const [a, b] = await seenBy(new LiveChanges(tree));
    expect(a?.base.state).toMatchObject({ changedNs: 50n });
    expect(b?.base.state).toBe("unknown");
  });

  it("may be given a base, which then stays", async () => {
    const tree = await playedTree();
    tree.scans = [{ records: [added("a")] }];
    const changes = new LiveChanges(tree);
    changes.setBase(Buffer.from("a"), { state: "unknown", unchangedNs: 7n });
    expect((await seenBy(changes))[0]?.base).toEqual({ state: "unknown", unchangedNs: 7n });
  });

  it("do not count a scan that failed", async () => {
    const tree = await playedTree();
    tree.scans = [];
    const changes = new LiveChanges(tree);
    await expect(seenBy(changes)).rejects.toMatchObject({ code: "file.not-found" });
    expect(changes.scannedNs).toBe(50n);
  });

  it("may be asked for with what was only touched, and since a time", async () => {
    const tree = await playedTree();
    tree.scans = [{ records: [same("a"), added("b")], startedNs: 80n, leftOut: 2n }];
    const changes = new LiveChanges(tree);
    const touched: TouchedPath[] = [];
    const onChanges = (some: readonly TouchedPath[]) => void touched.push(...some);
    expect(await changes.scanTouched({ since: 60n, signal, onChanges })).toMatchObject({
      startedNs: 80n,
      leftOut: { count: 2 },
    });
    expect(touched).toMatchObject([
      { change: "same" },
      { change: "added", base: { state: null, unchangedNs: 50n } },
    ]);
    expect("base" in (touched[0] as object)).toBe(false);
    expect(tree.files.requests[0]).toMatchObject({ flags: 2, offset: 60n });
    expect(changes.scannedNs).toBe(50n);
    changes.sawAll({ startedNs: 80n });
    expect(changes.scannedNs).toBe(80n);
  });

  it("have the host's new state as their base after they were made there", async () => {
    const tree = await playedTree();
    tree.scans = [{ records: [modified("a", {}, { ino: 5n }), same("b", {}, { ino: 6n })], startedNs: 90n }];
    const changes = new LiveChanges(tree);
    changes.setBase(Buffer.from("c"), { state: "unknown", unchangedNs: 7n });
    await changes.rebase(["a", "b", "gone"].map((path) => Buffer.from(path)));
    expect(changes.baseOf(Buffer.from("a"))).toMatchObject({ state: { ino: 5n }, unchangedNs: 90n });
    expect(changes.baseOf(Buffer.from("b"))).toMatchObject({ state: { ino: 6n }, unchangedNs: 90n });
    expect(changes.baseOf(Buffer.from("gone"))).toEqual({ state: null, unchangedNs: 90n });
    expect(changes.baseOf(Buffer.from("c"))).toEqual({ state: "unknown", unchangedNs: 7n });
    expect(tree.files.requests[0]?.flags).toBe(2);
  });

  it("are the same for all sandboxes of a tree", async () => {
    const [one, other] = [await playedTree(), await playedTree()];
    expect(changesOf(one)).toBe(changesOf(one));
    expect(changesOf(one)).not.toBe(changesOf(other));
  });
});

describe("the files of a tree", () => {
  it("are read without following links, up to a limit", async () => {
    const tree = await playedTree();
    tree.contents.set("/merged/a", "12345");
    tree.contents.set("/base/a", "123");
    const changes = new LiveChanges(tree);
    expect((await changes.read(present("a"), { maxBytes: 5 })).toString()).toBe("12345");
    await expect(changes.read(present("a"), { maxBytes: 4 })).rejects.toMatchObject({
      code: "file.too-large",
    });
    expect((await changes.readHost(present("a"), { maxBytes: 3 })).toString()).toBe("123");
    await expect(changes.readHost(present("a"), { maxBytes: 2 })).rejects.toMatchObject({
      code: "file.too-large",
    });
    expect(tree.files.requests.every(({ flags }) => (flags & 128) !== 0)).toBe(true);
  });

  it("of the host may be links, which are not followed", async () => {
    const tree = await playedTree();
    tree.stats.set("/base/a", { type: 3, target: Buffer.from("to") });
    const link = { ...deletedLink(), path: Buffer.from("a") };
    expect((await new LiveChanges(tree).readHost(link, { maxBytes: 1 })).toString()).toBe("to");
    expect(tree.done()).toEqual(["stat /base/a"]);
  });

  it("have the size that they had when they were scanned", async () => {
    const tree = await playedTree();
    tree.contents.set("/merged/a", "x".repeat(70_000));
    const changes = new LiveChanges(tree);
    const short = await changes.content(present("a", 60 * 1024), signal);
    expect(Buffer.isBuffer(short) && short.length).toBe(60 * 1024);
    const long = await changes.content(present("a", 60 * 1024 + 1), signal);
    expect(Buffer.isBuffer(long)).toBe(false);
    let length = 0;
    for await (const { data } of long as AsyncIterable<ContentPiece>) length += data.length;
    expect(length).toBe(60 * 1024 + 1);
    tree.stats.set("/merged/a", { type: 3 });
    expect(await changes.content({ ...deletedLink(), path: Buffer.from("a") }, signal)).toHaveLength(0);
    expect(tree.files.requests.every(({ flags }) => (flags & 128) !== 0)).toBe(true);
    expect(tree.files.requests.map(({ length }) => Number(length)).slice(0, 2)).toEqual([61440, 61441]);
  });

  it("are in directories, of which the directories are listed", async () => {
    const tree = await playedTree();
    tree.lists.set("/merged/d", [
      entry(2, "sub"),
      entry(1, "file"),
      entry(2, Buffer.from([0xff])),
      entry(3, "l"),
    ]);
    const changes = new LiveChanges(tree);
    expect(await changes.subdirectories(Buffer.from("d"), signal)).toEqual([
      Buffer.from("d/sub"),
      Buffer.from("d/\xff", "latin1"),
    ]);
  });

  it("are in directories, which have a state", async () => {
    const tree = await playedTree();
    const modifiedNs = 1_500_000_000_000_000_000n;
    tree.stats.set("/merged/d", { type: 2, mode: 0o750, uid: 1, gid: 2, size: 3n, ino: 4n, modifiedNs });
    const state = await new LiveChanges(tree).directoryState(Buffer.from("d"), signal);
    expect(state).toEqual({
      ...{ type: "directory", mode: 0o750, uid: 1, gid: 2, sizeBytes: 3, ino: 4n },
      ...{ modifiedNs, changedNs: modifiedNs, links: 1, rdev: 0n, linkTarget: null },
    });
    expect(tree.files.requests[0]?.flags).toBe(129);
  });

  it("are not read once the signal is aborted", async () => {
    const tree = await playedTree();
    tree.answer = () => ({ result: readResult() });
    const [changes, stop] = [new LiveChanges(tree), AbortSignal.abort(new Error("stop"))];
    const calls = [
      changes.scan({ signal: stop, onChanges: () => undefined }),
      changes.scanTouched({ since: undefined, signal: stop, onChanges: () => undefined }),
      changes.read(present("a"), { maxBytes: 1, signal: stop }),
      changes.readHost(present("a"), { maxBytes: 1, signal: stop }),
      changes.content(present("a"), stop),
      changes.subdirectories(Buffer.from("a"), stop),
      changes.directoryState(Buffer.from("a"), stop),
    ];
    for (const outcome of await Promise.allSettled(calls))
      expect(outcome).toMatchObject({ status: "rejected", reason: { message: "stop" } });
    expect(tree.done()).toEqual([]);
  });
});

function deletedLink(): SeenChange {
  const before = { ...presentState({ type: "symlink" }), dev: 0n };
  return {
    ...{ path: Buffer.alloc(0), change: "deleted", now: null, before },
    base: { state: before, unchangedNs: 0n },
  };
}
