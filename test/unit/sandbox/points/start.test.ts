import { describe, expect, it } from "vitest";
import { LiveChanges } from "../../../../src/sandbox/changes/live-changes.js";
import type { SeenChange, TouchedPath } from "../../../../src/sandbox/changes/workspace-change.js";
import { startOfFork, startOfSnapshot } from "../../../../src/sandbox/points/start.js";
import { ContentStore } from "../../../../src/sandbox/snapshots/content-store.js";
import type { ManifestEntry } from "../../../../src/sandbox/snapshots/manifest.js";
import type { EarlierBase } from "../../../../src/sandbox/snapshots/snapshot-store.js";
import type { PresentState } from "../../../../src/sandbox/tree/tree-changes.js";
import { baseState, type PlayedTree, playedTree, presentState } from "../overlay/played-tree.js";
import { newHome } from "./played-points.js";
import {
  baseAt,
  bytes,
  entryOf,
  has,
  hash,
  hostBase,
  scanOf,
  snapshotOf,
  storeWith,
} from "./stored-entries.js";

describe("the state that a snapshot was restored to", () => {
  async function start(
    entries: readonly ManifestEntry[],
    {
      from,
      written = [],
      touched = [],
    }: { from: ContentStore; written?: readonly EarlierBase[]; touched?: TouchedPath[] },
  ) {
    const contents = new ContentStore(newHome());
    const tree = await playedTree();
    const found = await startOfSnapshot(
      snapshotOf(entries, from),
      written,
    )({
      ...{ scan: scanOf(...touched), changes: new LiveChanges(tree), contents, signal: undefined },
    });
    return { found, contents };
  }

  it("is that of the snapshot, with its contents", async () => {
    const { store, ids } = await storeWith("new", "old");
    const entry = entryOf("a", presentState(), { sha256: ids[0], baseSha256: ids[1] });
    const { found, contents } = await start([entry, entryOf("b", null)], { from: store });
    expect(found).toEqual([entry, entryOf("b", null)]);
    expect(await has(contents, ids[0] ?? "")).toBe("new");
    expect(await has(contents, ids[1] ?? "")).toBe("old");
  });

  it("is without contents that are missing by now, and fails for other reasons", async () => {
    const { store, ids } = await storeWith("new");
    const entry = entryOf("a", presentState(), { sha256: hash("0"), baseSha256: ids[0] });
    const { found } = await start([entry], { from: store });
    expect(found).toMatchObject([{ sha256: null, baseSha256: ids[0] }]);
    const broken = { addFrom: 1 } as unknown as ContentStore;
    const reading = startOfSnapshot(
      snapshotOf([entry], store),
      [],
    )({
      ...{
        scan: scanOf(),
        changes: new LiveChanges(await playedTree()),
        contents: broken,
        signal: undefined,
      },
    });
    await expect(reading).rejects.toThrow(TypeError);
  });

  const before = baseState({ ino: 9n });
  const touchedAt = (given: Partial<TouchedPath>) =>
    ({
      path: bytes("a"),
      change: "modified",
      now: presentState({ uid: 3, gid: 4 }),
      before,
      base: hostBase,
      ...given,
    }) as TouchedPath;
  const file = baseState({ mode: 0o600 });

  it("has the host's earlier version of a path that differs from the one of now", async () => {
    const { store, ids } = await storeWith("old");
    const written = [baseAt("a", { state: file, baseSha256: ids[0] ?? null, owner: { uid: 7, gid: 8 } })];
    const { found, contents } = await start([], { from: store, written, touched: [touchedAt({})] });
    expect(found).toMatchObject([
      {
        change: {
          change: "modified",
          before: { ino: 9n },
          now: { mode: 0o600, uid: 7, gid: 8, links: 1, linkTarget: null },
        },
        ...{ sha256: ids[0], base: hostBase, baseSha256: null },
      },
    ]);
    expect(await has(contents, ids[0] ?? "")).toBe("old");
  });

  it.each<[string, Partial<EarlierBase>, Partial<TouchedPath>, object[]]>([
    ["nothing where the host has the same by now", { state: file }, { change: "same" } as never, []],
    [
      "an addition where the host has nothing by now",
      { state: file },
      { change: "added", before: null } as never,
      [{ change: { change: "added", before: null, now: { uid: 3, gid: 4 } } }],
    ],
    [
      "the owner root where none is known",
      { state: file },
      { now: null } as never,
      [{ change: { now: { uid: 0, gid: 0 } } }],
    ],
    [
      "a removal where nothing was",
      {},
      {},
      [{ change: { change: "deleted", now: null, before: { ino: 9n } }, sha256: null }],
    ],
    ["nothing where nothing was and is", {}, { change: "added", before: null } as never, []],
    [
      "a directory without content",
      { state: baseState({ type: "directory" }), baseSha256: hash("1") },
      {},
      [{ sha256: null }],
    ],
  ])("has %s", async (_name, given, touched, expected) => {
    const { store } = await storeWith();
    const written = [baseAt("a", given), baseAt("never touched", { state: file })];
    const { found } = await start([], { from: store, written, touched: [touchedAt(touched)] });
    expect(found).toMatchObject(expected);
  });
});

describe("the state that a fork was made with", () => {
  const now = presentState({ sizeBytes: 3, ino: 5n, changedNs: 6n, modifiedNs: 2_000_000n });
  const seen = (given: Partial<SeenChange> = {}) =>
    ({ path: bytes("a"), change: "added", now, before: null, base: hostBase, ...given }) as SeenChange;
  const own = { type: "file", ino: 50n, sizeBytes: 3, changedNs: 60n } as const;
  const parents = { type: 1, size: 3n, ino: 5n, modifiedNs: 2_000_000n };

  async function start(
    entry: SeenChange,
    { tree, there }: { tree: PlayedTree; there?: Partial<PresentState> | null },
  ) {
    const contents = new ContentStore(newHome());
    const touched =
      there === undefined
        ? []
        : [{ path: entry.path, now: there && presentState({ ...own, ...there }) } as TouchedPath];
    const fork = { entries: new Map([["a", entry]]), own: new Map([["a", own]]) };
    const request = { scan: scanOf(...touched), changes: new LiveChanges(tree), contents, signal: undefined };
    const [found] = await startOfFork(tree, fork)(request);
    return { found, content: found?.sha256 ? await has(contents, found.sha256) : null };
  }

  it("has the content of what is as it was, from the fork itself", async () => {
    const tree = await playedTree();
    tree.contents.set("/merged/a", "own");
    const { found, content } = await start(seen(), { tree, there: {} });
    expect(found).toMatchObject({
      change: { change: "added", path: bytes("a") },
      base: hostBase,
      baseSha256: null,
    });
    expect(found && "base" in found.change).toBe(false);
    expect(content).toBe("own");
  });

  it.each<[string, Partial<PresentState> | null | undefined]>([
    ["is another file", { ino: 9n }],
    ["was changed", { changedNs: 9n }],
    ["is gone", null],
    ["was not reported", undefined],
  ])("has the content of what %s since from its parent, if that still has it", async (_name, there) => {
    const tree = await playedTree();
    tree.contents.set("/from/a", "parent's");
    tree.stats.set("/from/a", parents);
    expect((await start(seen(), { tree, there })).content).toBe("par");
    for (const other of [{ ino: 9n }, { size: 9n }, { modifiedNs: 9n }]) {
      tree.stats.set("/from/a", { ...parents, ...other });
      expect((await start(seen(), { tree, there })).content).toBeNull();
    }
    tree.stats.clear();
    expect((await start(seen(), { tree, there })).content).toBeNull();
  });

  it("has no content of what is no file, and asks for none", async () => {
    const tree = await playedTree();
    for (const type of ["directory", "symlink"] as const)
      expect((await start(seen({ now: presentState({ type }) } as never), { tree })).content).toBeNull();
    expect((await start(seen({ now: null, change: "deleted" } as never), { tree })).found).toMatchObject({
      sha256: null,
    });
    expect(tree.done()).toEqual([]);
  });

  it("has no content of what is gone meanwhile, and fails if it cannot be read", async () => {
    const tree = await playedTree();
    expect((await start(seen(), { tree, there: {} })).content).toBeNull();
    tree.answer = () => ({ errno: 5 });
    await expect(start(seen(), { tree, there: {} })).rejects.toMatchObject({ errno: "EIO" });
  });
});
