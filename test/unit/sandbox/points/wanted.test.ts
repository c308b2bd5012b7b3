import { describe, expect, it } from "vitest";
import { type TreeNow, type Wanted, wantedPaths } from "../../../../src/sandbox/points/wanted.js";
import { ContentStore } from "../../../../src/sandbox/snapshots/content-store.js";
import type { ManifestEntry } from "../../../../src/sandbox/snapshots/manifest.js";
import type { EarlierBase, StoredSnapshot } from "../../../../src/sandbox/snapshots/snapshot-store.js";
import type { BaseState, PresentState } from "../../../../src/sandbox/tree/tree-changes.js";
import { added, baseState, type PlayedTree, playedTree, presentState } from "../overlay/played-tree.js";
import { contentText } from "../snapshots/content-text.js";
import { newHome } from "./played-points.js";

const bytes = (path: string) => Buffer.from(path, "latin1");
const base = { state: null, unchangedNs: 0n };

const entryOf = (path: string, now: PresentState | null, sha256: string | null = null): ManifestEntry =>
  ({
    change:
      now === null
        ? { path: bytes(path), change: "deleted", now, before: baseState() }
        : { path: bytes(path), change: "added", now, before: null },
    ...{ sha256, base, baseSha256: null },
  }) as ManifestEntry;

const baseAt = (path: string, state: BaseState | null, given: Partial<EarlierBase> = {}): EarlierBase => ({
  ...{ path: bytes(path), state, baseSha256: null, hostBase: base, owner: { uid: 7, gid: 8 } },
  ...given,
});

interface Given {
  entries?: readonly ManifestEntry[];
  bases?: readonly EarlierBase[];
  state?: readonly ManifestEntry[];
  touched?: TreeNow["touched"];
  isFresh?: boolean;
  tree?: PlayedTree;
}

async function wanted({
  entries = [],
  bases = [],
  state = [],
  touched = new Map(),
  isFresh = false,
  ...given
}: Given) {
  const tree = given.tree ?? (await playedTree());
  const contents = new ContentStore(newHome());
  const ids = new Map<string, string>();
  for (const content of ["one", "to"]) ids.set(content, (await contents.add(Buffer.from(content))).sha256);
  const named = <T extends { sha256?: string | null; baseSha256?: string | null }>(one: T): T => ({
    ...one,
    ...(one.sha256 && { sha256: ids.get(one.sha256) ?? one.sha256 }),
    ...(one.baseSha256 && { baseSha256: ids.get(one.baseSha256) ?? one.baseSha256 }),
  });
  const snapshot = {
    contents,
    bases: bases.map(named),
    entries: async function* () {
      yield* entries.map(named);
    },
  } as unknown as StoredSnapshot;
  const known = new Map(state.map(named).map((entry) => [entry.change.path.toString("latin1"), entry]));
  return await wantedPaths(snapshot, { tree, state: known, touched, isFresh, signal: undefined });
}

async function lineOf({ path, now, content }: Wanted): Promise<string> {
  const held = content === null ? "" : ` ${await contentOf(content)}`;
  return `${path.toString("latin1")} ${now?.type ?? "nothing"}${held}`;
}

async function contentOf(open: NonNullable<Wanted["content"]>): Promise<string> {
  const content = await open();
  return Buffer.isBuffer(content) ? content.toString() : await contentText(content);
}

const lines = async (given: Given) => await Promise.all((await wanted(given)).map(lineOf));
const directory = presentState({ type: "directory", mode: 0o755 });
const notKept = (path: string) => ({
  code: "workspace.conflict",
  message: `that state cannot be made again: ${JSON.stringify(path)} has been changed on the host since, and its content was not kept`,
  hint: expect.stringContaining("16 MiB"),
});

describe("what the entries of a snapshot want", () => {
  it("is each path that differs from the tree's", async () => {
    const entries = [
      entryOf(".brig-stage-1", null),
      entryOf("a", presentState(), "one"),
      entryOf("b", presentState(), "one"),
      entryOf("d", directory),
      entryOf("gone", null),
    ];
    const state = [entryOf("a", presentState(), "one"), entryOf("b", presentState({ mode: 0o600 }), "one")];
    expect(await lines({ entries, state })).toEqual(["b file one", "d directory", "gone nothing"]);
  });

  it("is not what is below a path that will be no directory", async () => {
    const entries = [entryOf("d", null), entryOf("d/a", null), entryOf("e", directory), entryOf("e/a", null)];
    expect(await lines({ entries })).toEqual(["d nothing", "e directory", "e/a nothing"]);
  });

  it("cannot be had if the content was not kept", async () => {
    await expect(wanted({ entries: [entryOf("a", presentState())] })).rejects.toMatchObject(notKept("a"));
    const same = entryOf("a", presentState());
    expect(await lines({ entries: [same], state: [same] })).toEqual([]);
  });
});

describe("a path that was the host's own", () => {
  const host = baseState({ sizeBytes: 3, ino: 5n, dev: 6n, modifiedNs: 2_000_000n });
  const still = { type: 1, mode: 0o644, size: 3n, ino: 5n, dev: 6n, modifiedNs: 2_000_000n };

  async function treeWith(
    stats: Record<string, Parameters<PlayedTree["stats"]["set"]>[1]>,
  ): Promise<PlayedTree> {
    const tree = await playedTree();
    for (const [path, stat] of Object.entries(stats)) tree.stats.set(path, stat);
    return tree;
  }

  it("wants nothing if the host still has it and the tree shows it", async () => {
    const tree = await treeWith({ "/base/d/a": still });
    expect(await lines({ tree, bases: [baseAt("d/a", host)] })).toEqual([]);
    expect(await lines({ tree, bases: [baseAt("d/a", host)], state: [entryOf("d", directory)] })).toEqual([]);
    expect(await lines({ tree, bases: [baseAt(".brig-stage-1", host)] })).toEqual([]);
  });

  it.each<[string, ManifestEntry]>([
    ["was changed", entryOf("d/a", presentState(), "one")],
    ["is gone with its directory", entryOf("d", null)],
  ])("is the host's again if it %s", async (_name, state) => {
    const tree = await treeWith({ "/base/d/a": still });
    tree.contents.set("/base/d/a", "host's");
    const [found] = await wanted({ tree, bases: [baseAt("d/a", host)], state: [state] });
    expect(found?.now).toMatchObject({
      type: "file",
      mode: 0o644,
      uid: 7,
      gid: 8,
      links: 1,
      linkTarget: null,
    });
    expect(found && (await lineOf(found))).toBe("d/a file hos");
  });

  it.each([
    ["type", { type: 4 }],
    ["mode", { mode: 0o600 }],
    ["size", { size: 4n }],
    ["inode", { ino: 9n }],
    ["device", { dev: 9n }],
    ["time", { modifiedNs: 3_000_000n }],
  ])("needs its kept content if the host has one of another %s", async (_name, other) => {
    const tree = await treeWith({ "/base/a": { ...still, ...other } });
    expect(await lines({ tree, bases: [baseAt("a", host, { baseSha256: "one" })] })).toEqual(["a file one"]);
    await expect(wanted({ tree, bases: [baseAt("a", host)] })).rejects.toMatchObject(notKept("a"));
  });

  it("needs its kept content if the host has nothing there", async () => {
    expect(await lines({ bases: [baseAt("a", host, { baseSha256: "one" })] })).toEqual(["a file one"]);
    await expect(wanted({ bases: [baseAt("a", host)] })).rejects.toMatchObject(notKept("a"));
  });

  it("is a link again if its target was kept", async () => {
    const link = baseState({ type: "symlink" });
    const [found] = await wanted({ bases: [baseAt("l", link, { baseSha256: "to" })] });
    expect(found).toMatchObject({ now: { type: "symlink", linkTarget: Buffer.from("to") }, content: null });
    await expect(wanted({ bases: [baseAt("l", link)] })).rejects.toMatchObject(notKept("l"));
  });

  it("is left as it is if it was a pipe, a socket or a device", async () => {
    expect(await lines({ bases: [baseAt("p", baseState({ type: "fifo" }))] })).toEqual([]);
  });

  it.each<[string, Record<string, Parameters<PlayedTree["stats"]["set"]>[1]>, number]>([
    ["the host's file", { "/base/a": { type: 4, uid: 11 }, "/merged": { type: 2, uid: 12 } }, 11],
    ["the top of the tree", { "/merged": { type: 2, uid: 12 } }, 12],
    ["root", {}, 0],
  ])("belongs to the owner of %s where its own is not known", async (_name, stats, uid) => {
    const bases = [baseAt("a", host, { owner: null, baseSha256: "one" })];
    const [found] = await wanted({ tree: await treeWith(stats), bases });
    expect(found?.now).toMatchObject({ uid });
  });

  it("that was nothing wants that again if anything is there", async () => {
    const bases = [baseAt("a", null)];
    expect(await lines({ bases })).toEqual([]);
    expect(await lines({ bases, isFresh: true })).toEqual(["a nothing"]);
    expect(await lines({ bases, state: [entryOf("a", presentState(), "one")] })).toEqual(["a nothing"]);
    expect(await lines({ bases, state: [entryOf("a", null)] })).toEqual([]);
    const touched = (now: PresentState | null) =>
      new Map([["a", { path: bytes("a"), now }]]) as unknown as TreeNow["touched"];
    expect(await lines({ bases, touched: touched(presentState()) })).toEqual(["a nothing"]);
    expect(await lines({ bases, touched: touched(null) })).toEqual([]);
  });

  it("is not looked at below what the snapshot has as no directory", async () => {
    const tree = await playedTree();
    const entries = [entryOf("d", presentState(), "one")];
    expect(await lines({ tree, entries, bases: [baseAt("d/a", host)] })).toEqual(["d file one"]);
    expect(tree.done()).toEqual([]);
  });
});

describe("a directory that was the host's own", () => {
  const state = baseState({ type: "directory", mode: 0o750 });
  const there = (mode: number, uid = 0) => ({ type: 2, mode, uid });

  it("wants nothing if the tree has it with its mode", async () => {
    const tree = await playedTree();
    tree.stats.set("/merged/d", there(0o750));
    expect(await lines({ tree, bases: [baseAt("d", state)] })).toEqual([]);
  });

  it("wants its mode back", async () => {
    const tree = await playedTree();
    tree.stats.set("/merged/d", there(0o700, 5));
    const [found, none] = await wanted({ tree, bases: [baseAt("d", state)] });
    expect(found?.now).toMatchObject({
      type: "directory",
      mode: 0o750,
      uid: 7,
      gid: 8,
      linkTarget: null,
      rdev: 0n,
    });
    expect([found?.content, none]).toEqual([null, undefined]);
    const [other] = await wanted({ tree, bases: [baseAt("d", state, { owner: null })] });
    expect(other?.now).toMatchObject({ uid: 5 });
  });

  it("that was removed is made again with all that the host has in it", async () => {
    const tree = await playedTree();
    tree.stats.set("/base/d", there(0o750, 6));
    tree.scans = [
      {
        records: [
          added("a", { size: 2n }),
          added("e", { type: 2 }),
          added("e/f", { size: 1n }),
          added("k", { size: 1n }),
          added("z", { type: 3, target: "to" }),
        ],
      },
    ];
    tree.contents.set("/base/d/a", "aa").set("/base/d/e/f", "f");
    const bases = [baseAt("d", state, { owner: null })];
    const entries = [entryOf("d/k", null), entryOf("d/x", presentState(), "one")];
    const found = await wanted({ tree, bases, entries });
    expect(await Promise.all(found.map(lineOf))).toEqual([
      ...["d/k nothing", "d/x file one", "d directory"],
      ...["d/a file aa", "d/e directory", "d/e/f file f", "d/z symlink"],
    ]);
    expect(found[2]?.now).toMatchObject({ mode: 0o750, uid: 6 });
  });

  it("and one in it that was removed at another point are made once", async () => {
    const tree = await playedTree();
    tree.stats.set("/base/d", there(0o750)).set("/base/d/e", there(0o750));
    tree.scans = [
      { records: [added("e", { type: 2 }), added("e/f", { type: 2 })] },
      { records: [added("f", { type: 2 })] },
    ];
    const found = await lines({ tree, bases: [baseAt("d", state), baseAt("d/e", state)] });
    expect(found).toEqual(["d directory", "d/e/f directory", "d/e directory"]);
  });

  it("cannot be made again if the host has no directory there any more", async () => {
    await expect(wanted({ bases: [baseAt("d", state)] })).rejects.toMatchObject(notKept("d"));
    const tree = await playedTree();
    tree.stats.set("/base/d", { type: 1 }).set("/merged/d", { type: 1 });
    await expect(wanted({ tree, bases: [baseAt("d", state)] })).rejects.toMatchObject(notKept("d"));
  });
});
