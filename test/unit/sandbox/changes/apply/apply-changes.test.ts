import { describe, expect, it } from "vitest";
import { LiveChanges } from "../../../../../src/sandbox/changes/live-changes.js";
import { commitResult } from "../../channel/played-files.js";
import { added, deleted, modified } from "../../overlay/played-tree.js";
import { applyOf, newHome, notesIn, treeWith } from "./apply-of.js";

describe("an apply", () => {
  it("stages what is new, commits it, and makes it the base of what follows", async () => {
    const tree = await treeWith([
      added("a", { size: 3n, mode: 0o4755 }),
      added("d", { type: 2, mode: 0o1750 }),
      added("d/f", { size: 2n }),
      added("d/l", { type: 3, target: "to" }),
      modified("e", { size: 3n }, { ino: 77n }),
      deleted("g", { type: 2 }),
      deleted("h", { ino: 78n }),
    ]);
    tree.contents.set("/merged/a", "one").set("/merged/d/f", "2!").set("/merged/e", "new");
    const brigHome = newHome();
    const applied: string[][] = [];
    const changes = new LiveChanges(tree);
    const result = await applyOf(
      tree,
      { brigHome },
      { changes, onApplied: async (paths) => void applied.push(paths.map(String)) },
    );
    const paths = ["a", "d", "d/f", "d/l", "e", "g", "h"];
    expect(result).toEqual({ applied: paths, conflicts: [], skipped: [] });
    expect(applied).toEqual([paths]);
    expect(tree.staged()).toEqual({ 0: "one", 1: "2!", 2: "new" });
    const plain = { owner: null, modifiedNs: null, target: "" };
    expect(tree.committed()).toEqual([
      { ...plain, action: "put", path: "a", expects: "absent", mode: 0o755, content: 0 },
      { ...plain, action: "mkdir", path: "d", expects: "absent", mode: 0o750, content: 0 },
      { ...plain, action: "put", path: "d/f", expects: "absent", mode: 0o644, content: 1 },
      { ...plain, action: "symlink", path: "d/l", expects: "absent", mode: 0, content: 0, target: "to" },
      { ...plain, action: "put", path: "e", expects: "state file 77", mode: 0o644, content: 2 },
      { ...plain, action: "remove", path: "g", expects: "older directory 50", mode: 0, content: 0 },
      { ...plain, action: "remove", path: "h", expects: "state file 78", mode: 0, content: 0 },
    ]);
    const done = tree.done();
    expect(done[0]).toBe("changes /merged");
    expect(done.filter((one) => !one.startsWith("read"))).toEqual([
      ...["changes /merged", "mkdir /base/STAGE"],
      ...[0, 1, 2].map((at) => `write /base/STAGE/${at}`),
      ...["commit /base", "changes /merged"],
    ]);
    expect(tree.appliers).toEqual({ opened: 1, closed: 1 });
    expect(notesIn(brigHome)).toEqual([]);
    expect(changes.baseOf(Buffer.from("e"))).toMatchObject({ state: { ino: 77n }, unchangedNs: 100n });
  });

  it("keeps a directory that is one on both sides, and replaces one by a file only if nothing in it is new", async () => {
    const tree = await treeWith([
      modified("a", { type: 2, mode: 0o700 }, { type: 2, ino: 5n }),
      modified("b", {}, { type: 2, ino: 6n }),
    ]);
    tree.stats.set("/merged/b", { type: 1 });
    await applyOf(tree);
    expect(tree.committed().map(({ action, path, expects }) => `${action} ${path} ${expects}`)).toEqual([
      "mkdir a state directory 5",
      "put b older directory 50",
    ]);
  });

  it("may only say what it would do", async () => {
    const tree = await treeWith([added(".git/x"), added("a")]);
    const onApplied = async () => {
      throw new Error("nothing was applied");
    };
    expect(await applyOf(tree, { dryRun: true }, { onApplied })).toEqual({
      ...{ applied: ["a"], conflicts: [] },
      skipped: [{ path: ".git/x", reason: "it belongs to a git repository's own files" }],
    });
    expect(tree.done()).toEqual(["changes /merged"]);
    expect(tree.appliers.opened).toBe(0);
  });

  it("of nothing starts nothing", async () => {
    const tree = await treeWith([added(".git/x")]);
    expect(await applyOf(tree)).toMatchObject({ applied: [], skipped: [{ path: ".git/x" }] });
    expect(tree.appliers.opened).toBe(0);
    expect(tree.done()).toEqual(["changes /merged"]);
  });

  it("skips protected names and what is mounted, and takes the rest", async () => {
    const tree = await treeWith([added(".CODEX/x"), added("f", { type: 4 }), added("m/x")]);
    tree.leftOut = ["m"];
    expect(await applyOf(tree, { dryRun: true })).toEqual({
      ...{ applied: [], conflicts: [] },
      skipped: [
        { path: ".CODEX/x", reason: ".codex is a protected name" },
        { path: "f", reason: "it is a fifo" },
        { path: "m/x", reason: "it is protected" },
      ],
    });
  });

  it("of some paths takes the new directories above them, and nothing beside them", async () => {
    const records = [
      added("a", { type: 2 }),
      added("a/b", { type: 2 }),
      added("a/b/c"),
      added("a/b/d"),
      added("ab", { type: 2 }),
      added("ab/x"),
      added("z"),
    ];
    const paths = async (...asked: string[]) =>
      (await applyOf(await treeWith(records), { dryRun: true, paths: asked })).applied;
    expect(await paths("a/b/c")).toEqual(["a", "a/b", "a/b/c"]);
    expect(await paths("a/b/c", "a/b/d")).toEqual(["a", "a/b", "a/b/c", "a/b/d"]);
    expect(await paths("ab/x", "z")).toEqual(["ab", "ab/x", "z"]);
    expect(await paths("nothing")).toEqual([]);
  });

  it("without the repository leaves out all of it", async () => {
    const tree = await treeWith([added(".git", { type: 2 }), added(".git/x"), added("a")]);
    expect(await applyOf(tree, { dryRun: true, withoutRepository: true })).toEqual({
      ...{ applied: ["a"], conflicts: [], skipped: [] },
    });
  });

  it("writes nothing if the host has changed a path, too", async () => {
    const tree = await treeWith([added("a"), modified("b", {}, { changedNs: 51n }), added("c", { type: 4 })]);
    expect(await applyOf(tree)).toEqual({
      applied: [],
      conflicts: [{ path: "b", reason: "it was changed on the host meanwhile" }],
      skipped: [{ path: "c", reason: "it is a fifo" }],
    });
    expect(tree.appliers.opened).toBe(0);
  });

  it("names what has changed since the scan, and changes no base then", async () => {
    const tree = await treeWith([added("a"), added("b", { type: 4 })]);
    tree.stats.set("/merged/a", { type: 1 });
    tree.answer = ({ operation }) =>
      operation === "commit" ? { errno: 17, result: commitResult({ conflicts: [[0, 1]] }) } : null;
    const brigHome = newHome();
    expect(await applyOf(tree, { brigHome })).toEqual({
      applied: [],
      conflicts: [{ path: "a", reason: "it was created meanwhile" }],
      skipped: [{ path: "b", reason: "it is a fifo" }],
    });
    expect(tree.done().at(-1)).toBe("commit /base");
    expect(tree.appliers).toEqual({ opened: 1, closed: 1 });
    expect(notesIn(brigHome)).toEqual([]);
  });
});
