import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { LiveChanges } from "../../../../src/sandbox/changes/live-changes.js";
import { takeSnapshot, tooLarge } from "../../../../src/sandbox/changes/take-snapshot.js";
import type { SeenChange } from "../../../../src/sandbox/changes/workspace-change.js";
import { openSnapshot } from "../../../../src/sandbox/snapshots/snapshot-store.js";
import { extent } from "../channel/played-files.js";
import {
  added,
  deleted,
  modified,
  type PlayedTree,
  playedTree,
  presentState,
} from "../overlay/played-tree.js";
import { contentText } from "../snapshots/content-text.js";

const createdAt = new Date("2026-01-02T03:04:05.678Z");

function newHome(): string {
  const home = mkdtempSync(join(tmpdir(), "brig-take-"));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  return home;
}

async function treeWith(
  records: readonly Buffer[],
  contents: Record<string, string> = {},
): Promise<PlayedTree> {
  const tree = await playedTree();
  tree.scans = [{ records }];
  for (const [path, content] of Object.entries(contents)) tree.contents.set(`/merged/${path}`, content);
  return tree;
}

async function take(tree: PlayedTree, options: Partial<Parameters<typeof takeSnapshot>[1]> = {}) {
  const brigHome = options.brigHome ?? newHome();
  const taken = await takeSnapshot(new LiveChanges(tree), { id: "snap", createdAt, ...options, brigHome });
  return { ...taken, brigHome };
}

async function stored(brigHome: string) {
  const snapshot = await openSnapshot(brigHome, "snap");
  const found: string[] = [];
  for await (const { change, sha256 } of snapshot.entries()) {
    const content = sha256 === null ? "none" : await contentText(snapshot.contents.read(sha256));
    found.push(`${change.change} ${change.path} ${content}`);
  }
  return found;
}

describe("a snapshot of a tree", () => {
  it("has every change, with the content of each file", async () => {
    const records = [
      added(".git", { type: 2 }),
      added(".git/x", { size: 1n }),
      added("a", { size: 3n }),
      deleted("b"),
      added("l", { type: 3, target: "to", size: 99n }),
      modified("m", { size: 2n }, { ino: 5n }),
    ];
    const tree = await treeWith(records, { ".git/x": "g", a: "one+", m: "2!" });
    const { snapshot, count, repositoryCount, brigHome } = await take(tree);
    expect({ count, repositoryCount }).toEqual({ count: 6, repositoryCount: 2 });
    expect(snapshot.head).toEqual({
      version: 1,
      id: "snap",
      workspace: "/repo",
      createdAt: createdAt.toISOString(),
    });
    expect(await stored(brigHome)).toEqual([
      "added .git none",
      "added .git/x g",
      "added a one",
      "deleted b none",
      "added l none",
      "modified m 2!",
    ]);
    const entries = [];
    for await (const entry of snapshot.entries()) entries.push(entry);
    expect(entries[5]).toMatchObject({ base: { state: { ino: 5n }, unchangedNs: 50n } });
  });

  it.each([
    ["is gone", 2],
    ["is a directory's name now", 20],
    ["is a link now", 40],
    ["is something else now", 4096 + 2],
  ])("leaves out a file that %s", async (_name, errno) => {
    const tree = await treeWith([added("a"), added("b", { size: 1n })], { b: "x" });
    tree.stats.set("/merged/a", { type: 1 });
    tree.answer = ({ operation, path }) => (operation === "read" && path.includes("/b") ? { errno } : null);
    const { count, brigHome } = await take(tree);
    expect(count).toBe(1);
    expect(await stored(brigHome)).toHaveLength(1);
  });

  it("that cannot be read to its end leaves nothing behind", async () => {
    const tree = await treeWith([added("b", { size: 1n })]);
    tree.answer = ({ operation }) => (operation === "read" ? { errno: 5 } : null);
    const brigHome = newHome();
    await expect(take(tree, { brigHome })).rejects.toMatchObject({ code: "file.failed", errno: "EIO" });
    expect(readdirSync(join(brigHome, "snapshots"))).toEqual([]);
  });

  it("may have as many bytes as allowed, and not one more", async () => {
    const records = [added("a", { size: 2n }), deleted("b", { size: 99n }), added("c", { size: 3n })];
    const contents = { a: "12", c: "123" };
    expect((await take(await treeWith(records, contents), { maxBytes: 5 })).count).toBe(3);
    const brigHome = newHome();
    await expect(take(await treeWith(records, contents), { brigHome, maxBytes: 4 })).rejects.toMatchObject({
      code: "file.too-large",
      message: expect.stringContaining("more than 4 B"),
    });
    expect(readdirSync(join(brigHome, "snapshots"))).toEqual([]);
    const size = 10n * 1024n ** 3n + 1n;
    await expect(take(await treeWith([added("a", { size })]))).rejects.toMatchObject({
      code: "file.too-large",
      message: expect.stringContaining("10"),
    });
    const withHoles = [added("a", { size, allocated: 4096n }), added("b", { size: 3n })];
    const sparse = await treeWith(withHoles, { a: "x", b: "123" });
    expect((await take(sparse, { maxBytes: 4096 + 3 })).count).toBe(2);
    await expect(take(await treeWith(withHoles), { maxBytes: 4096 + 2 })).rejects.toMatchObject({
      code: "file.too-large",
    });
  });

  it("keeps the holes of a file, and takes as much as its data", async () => {
    const tree = await treeWith([added("a", { size: 2n ** 40n, allocated: 4096n })]);
    tree.answer = ({ operation }) =>
      operation === "read" ? { output: [extent(4096, "x"), extent(2 ** 40)] } : null;
    const { snapshot, brigHome } = await take(tree);
    expect(await stored(brigHome)).toEqual(["added a x"]);
    for await (const { sha256 } of snapshot.entries()) {
      expect(sha256).toMatch(/^sparse-/);
      const pieces = [];
      for await (const { offset } of snapshot.contents.read(sha256 ?? "")) pieces.push(offset);
      expect(pieces).toEqual([4096, 2 ** 40]);
    }
  });

  it("stops with its signal", async () => {
    const brigHome = newHome();
    const signal = AbortSignal.abort(new Error("stop"));
    await expect(take(await treeWith([]), { brigHome, signal })).rejects.toThrow("stop");
    expect(readdirSync(join(brigHome, "snapshots"))).toEqual([]);
    const abort = new AbortController();
    const tree = await treeWith([added("b", { size: 1n })]);
    tree.answer = ({ operation }) => {
      if (operation !== "read") return null;
      setImmediate(() => abort.abort(new Error("stop")));
      return { waitsForKill: true };
    };
    await expect(take(tree, { brigHome, signal: abort.signal })).rejects.toThrow("stop");
  });

  it("cannot be stored in what is no directory", async () => {
    await expect(take(await treeWith([]), { brigHome: "/dev/null" })).rejects.toMatchObject({
      code: "snapshot.failed",
    });
  });
});

describe("changes that are too large", () => {
  const change = (path: string, sizeBytes: number, type: "file" | "directory" = "file") =>
    ({ path: Buffer.from(path), now: presentState({ sizeBytes, type }) }) as SeenChange;
  const gone = { path: Buffer.from("gone"), now: null } as SeenChange;

  it("are named by the largest of them", () => {
    const changes = [gone, change("a", 5), change("b", 2048), change("c", 7), change("d", 9999, "directory")];
    expect(tooLarge(changes, 1024)).toMatchObject({
      code: "file.too-large",
      message:
        'the files that were changed in the workspace have more than 1.0 KiB; one of them is "b" with 2.0 KiB',
      hint: expect.stringContaining("remove large files"),
    });
    expect(tooLarge([change("first", 5), change("second", 5)], 1024).message).toContain('"first"');
    expect(tooLarge([gone, change("empty", 0)], 1024).message).toContain('"empty"');
  });

  it("are not named where they are not known", () => {
    expect(tooLarge([gone], 1024).message).toMatch(/more than 1\.0 KiB$/);
  });
});
