import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { CopyCount } from "../../../../src/sandbox/changes/copied-changes.js";
import { LiveChanges } from "../../../../src/sandbox/changes/live-changes.js";
import type { SeenChange } from "../../../../src/sandbox/changes/workspace-change.js";
import { isGone } from "../../../../src/sandbox/files/file-request.js";
import { isSameEntry, storeEntry } from "../../../../src/sandbox/points/wanted.js";
import { ContentStore } from "../../../../src/sandbox/snapshots/content-store.js";
import type { ManifestEntry } from "../../../../src/sandbox/snapshots/manifest.js";
import type { PresentState } from "../../../../src/sandbox/tree/tree-changes.js";
import { baseState, playedTree, presentState } from "../overlay/played-tree.js";
import { contentText } from "../snapshots/content-text.js";

const MIB16 = 16 * 2 ** 20;

async function storing() {
  const directory = mkdtempSync(join(tmpdir(), "brig-entries-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const tree = await playedTree();
  const contents = new ContentStore(directory);
  const stored: number[] = [];
  const store = {
    changes: new LiveChanges(tree),
    contents,
    count: new CopyCount(undefined),
    onStored: (size: number) => void stored.push(size),
    signal: undefined,
  };
  const read = async (sha256: string | null | undefined) =>
    typeof sha256 === "string" ? await contentText(contents.read(sha256)) : sha256;
  return { tree, store, stored, read, directory };
}

const host = baseState({ ino: 5n, sizeBytes: 3 });
const change = (given: Partial<SeenChange> = {}): SeenChange =>
  ({
    ...{ path: Buffer.from("a"), change: "modified", now: presentState({ sizeBytes: 3 }), before: host },
    ...{ base: { state: host, unchangedNs: 1n }, ...given },
  }) as SeenChange;

describe("a changed path", () => {
  it("is stored with its content, and the host's at its first change", async () => {
    const { tree, store, stored, read } = await storing();
    tree.contents.set("/merged/a", "new").set("/base/a", "old");
    const entry = await storeEntry(change(), undefined, store);
    expect(entry).toMatchObject({
      change: { path: Buffer.from("a"), change: "modified" },
      base: { unchangedNs: 1n },
    });
    expect(entry && "base" in entry.change).toBe(false);
    expect([await read(entry?.sha256), await read(entry?.baseSha256)]).toEqual(["new", "old"]);
    expect(stored).toEqual([3, 3]);
    await storeEntry(change(), undefined, store);
    expect(stored).toEqual([3, 3]);
  });

  it("keeps the host's content of an earlier point, without reading it again", async () => {
    const { tree, store } = await storing();
    tree.contents.set("/merged/a", "new");
    const previous = {
      base: { state: { ...host }, unchangedNs: 9n },
      baseSha256: "b".repeat(64),
    } as ManifestEntry;
    expect((await storeEntry(change(), previous, store))?.baseSha256).toBe("b".repeat(64));
    const { baseSha256: _, ...without } = previous;
    expect((await storeEntry(change(), without as ManifestEntry, store))?.baseSha256).toBeNull();
    expect(tree.done()).toEqual(["read /merged/a", "read /merged/a"]);
  });

  it("reads the host's again if it has another base since", async () => {
    const { tree, store, read } = await storing();
    tree.contents.set("/merged/a", "new").set("/base/a", "old");
    const previous = {
      base: { state: { ...host, ino: 9n }, unchangedNs: 9n },
      baseSha256: "b".repeat(64),
    } as ManifestEntry;
    expect(await read((await storeEntry(change(), previous, store))?.baseSha256)).toBe("old");
  });

  it("is stored without the host's where the host has another one by now", async () => {
    const { tree, store } = await storing();
    tree.contents.set("/merged/a", "new").set("/base/a", "old");
    const changed = change({ base: { state: { ...host, ino: 9n }, unchangedNs: 1n } });
    expect((await storeEntry(changed, undefined, store))?.baseSha256).toBeNull();
    expect(tree.done()).toEqual(["read /merged/a"]);
    const unknown = change({ base: { state: "unknown", unchangedNs: 1n } });
    expect((await storeEntry(unknown, undefined, store))?.baseSha256).toMatch(/^[0-9a-f]{64}$/);
  });

  it("that was a link is stored with its old target", async () => {
    const { tree, store, read } = await storing();
    const link = baseState({ type: "symlink", sizeBytes: MIB16 * 2 });
    tree.stats.set("/base/a", { type: 3, target: Buffer.from("to") });
    const deleted = change({
      change: "deleted",
      now: null,
      before: link,
      base: { state: link, unchangedNs: 1n },
    } as never);
    const entry = await storeEntry(deleted, undefined, store);
    expect([await read(entry?.sha256), await read(entry?.baseSha256)]).toEqual([null, "to"]);
  });

  it.each<[string, Partial<SeenChange>]>([
    ["a directory", { before: baseState({ type: "directory" }) } as never],
    ["a pipe", { before: baseState({ type: "fifo" }) } as never],
    ["nothing", { before: null } as never],
    ["a file of more than 16 MiB", { before: baseState({ sizeBytes: MIB16 + 1 }) } as never],
  ])("that was %s is stored without it", async (_name, given) => {
    const { tree, store } = await storing();
    const state = given.before ?? null;
    const now = presentState({ type: "directory" });
    const entry = await storeEntry(
      change({ ...given, now, base: { state, unchangedNs: 1n } } as never),
      undefined,
      store,
    );
    expect(entry).toMatchObject({ sha256: null, baseSha256: null });
    expect(tree.done()).toEqual([]);
  });

  it("that was a file of exactly 16 MiB is stored with it", async () => {
    const { tree, store } = await storing();
    tree.contents.set("/base/a", "short by now");
    const before = baseState({ sizeBytes: MIB16 });
    const gone = change({
      change: "deleted",
      now: null,
      before,
      base: { state: before, unchangedNs: 1n },
    } as never);
    expect((await storeEntry(gone, undefined, store))?.baseSha256).toMatch(/^[0-9a-f]{64}$/);
  });

  it.each([
    ["is gone", 2],
    ["is below a file", 20],
    ["is a link", 40],
    ["is too large", 27],
    ["is something else", 4096 + 2],
  ])("is stored without the host's if that %s by now", async (_name, errno) => {
    const { tree, store } = await storing();
    tree.contents.set("/merged/a", "new");
    tree.answer = ({ path }) => (path.includes("/base") ? { errno } : null);
    expect(await storeEntry(change(), undefined, store)).toMatchObject({ baseSha256: null });
  });

  it.each([2, 20, 40, 4096 + 2])("is left out if the errno of reading it is %d", async (errno) => {
    const { tree, store } = await storing();
    tree.contents.set("/base/a", "old");
    tree.answer = ({ path }) => (path.includes("/merged") ? { errno } : null);
    expect(await storeEntry(change(), undefined, store)).toBeNull();
  });

  it("is an error if it, or the host's, cannot be read, and then nothing is written any more", async () => {
    for (const side of ["/merged", "/base"]) {
      const { tree, store, directory } = await storing();
      tree.contents.set("/merged/a", "new").set("/base/a", "old");
      tree.answer = ({ path }) => (path.includes(side) ? { errno: 5 } : null);
      await expect(storeEntry(change(), undefined, store)).rejects.toMatchObject({ errno: "EIO" });
      expect(readdirSync(directory).filter((name) => name.endsWith(".new"))).toEqual([]);
    }
  });
});

it("a file is gone only with some errors", () => {
  expect(isGone(new Error("x"))).toBe(false);
  expect(isGone(Object.assign(new Error("x"), { code: "file.not-found" }))).toBe(false);
});

describe("two entries", () => {
  const of = (now: Partial<PresentState> | null, sha256: string | null = "a") =>
    ({ change: { now: now === null ? null : presentState(now) }, sha256 }) as ManifestEntry;

  it("are the same with the same content, mode and owner", () => {
    expect(isSameEntry(undefined, undefined)).toBe(true);
    expect(isSameEntry(of({}), of({ ino: 9n, modifiedNs: 9n, changedNs: 9n, links: 9, sizeBytes: 9 }))).toBe(
      true,
    );
    expect(isSameEntry(of(null, null), of(null, null))).toBe(true);
    const link = { type: "symlink", linkTarget: Buffer.from("to") } as const;
    expect(isSameEntry(of(link), of({ ...link, linkTarget: Buffer.from("to") }))).toBe(true);
  });

  it.each<[string, ManifestEntry | undefined]>([
    ["content", of({}, "b")],
    ["type", of({ type: "fifo" })],
    ["mode", of({ mode: 0o600 })],
    ["owner", of({ uid: 9 })],
    ["group", of({ gid: 9 })],
    ["device", of({ rdev: 9n })],
    ["existence", of(null)],
    ["place", undefined],
  ])("are not with another %s", (_name, other) => {
    expect(isSameEntry(of({}), other)).toBe(false);
    expect(isSameEntry(other, of({}))).toBe(false);
  });

  it("are not with another target", () => {
    const link = (to: string | null) =>
      of({ type: "symlink", linkTarget: to === null ? null : Buffer.from(to) });
    expect(isSameEntry(link("a"), link("b"))).toBe(false);
    expect(isSameEntry(link("a"), link(null))).toBe(false);
  });
});
