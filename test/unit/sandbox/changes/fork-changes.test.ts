import { describe, expect, it } from "vitest";
import { BrigError } from "../../../../src/errors.js";
import { applyFork, diffFork } from "../../../../src/sandbox/changes/fork-changes.js";
import type { ForkPathOptions } from "../../../../src/sandbox/changes/workspace-change.js";
import { commitResult } from "../channel/played-files.js";
import { added, deleted, modified, type PlayedTree, playedTree } from "../overlay/played-tree.js";
import { PARENT_NS, type PlayedFork, playedFork } from "./fork/played-fork.js";

const MIB = 2 ** 20;
const file = { ino: 5n, size: 2n, changedNs: 3n };

describe("the diff of a fork", () => {
  it("is against the state of its parent", async () => {
    const played = await playedFork([added("a", file), deleted("b"), modified("c", file)], {
      now: [added("a", { ino: 9n }), added("b"), deleted("c"), added("d", { mode: 0o700 }), modified("e")],
    });
    played.parent.contents.set("/merged/a", "old\n").set("/merged/c", "c\n").set("/merged/e", "e1\n");
    played.tree.contents
      .set("/merged/a", "new\n")
      .set("/merged/b", "b\n")
      .set("/merged/d", "d\n")
      .set("/merged/e", "e2\n");
    const { files, text } = await diffFork(played.fork, {});
    expect(files).toEqual([
      { path: "a", kind: "update" },
      { path: "b", kind: "add" },
      { path: "c", kind: "delete" },
      { path: "d", kind: "add" },
      { path: "e", kind: "update" },
    ]);
    expect(text.split(/^(?=diff)/m)).toEqual([
      expect.stringMatching(/^diff --git a\/a b\/a\n[\s\S]*-old\n\+new\n$/),
      expect.stringMatching(/new file mode 100644\n[\s\S]*\+b\n$/),
      expect.stringMatching(/deleted file mode 100644\n[\s\S]*-c\n$/),
      expect.stringMatching(/new file mode 100755\n[\s\S]*\+d\n$/),
      expect.stringMatching(/-e1\n\+e2\n$/),
    ]);
  });

  it("names what has no patch: links, directories, and what is too large", async () => {
    const now = [
      added("d", { type: 2 }),
      added("l", { type: 3, target: "to" }),
      added("large", { size: BigInt(MIB + 1) }),
      deleted("was-large", { size: BigInt(MIB + 1) }),
    ];
    const played = await playedFork([], { now });
    expect(await diffFork(played.fork, {})).toEqual({
      files: [
        { path: "d", kind: "add" },
        { path: "l", kind: "add" },
        { path: "large", kind: "add" },
        { path: "was-large", kind: "delete" },
      ],
      text: "",
    });
    expect(played.parent.done()).toEqual(["changes /merged"]);
  });

  it("has a file of exactly 1 MiB", async () => {
    const played = await playedFork([], { now: [added("a", { size: BigInt(MIB) })] });
    played.tree.contents.set("/merged/a", "x\n");
    expect((await diffFork(played.fork, {})).text).toContain("+x");
  });

  it("shows a link that has become a file as a new file", async () => {
    const played = await playedFork([added("a", { ...file, type: 3, target: "to" })], { now: [added("a")] });
    played.tree.contents.set("/merged/a", "x\n");
    const { files, text } = await diffFork(played.fork, {});
    expect(files).toEqual([{ path: "a", kind: "update" }]);
    expect(text).toMatch(/new file mode 100644/);
  });

  it("leaves out a file that was replaced or has grown meanwhile, and fails if one cannot be read", async () => {
    const played = await playedFork([], { now: [added("a"), added("b")] });
    played.tree.contents.set("/merged/b", "b\n");
    const { files, text } = await diffFork(played.fork, {});
    expect(files).toHaveLength(2);
    expect(text).toMatch(/^diff --git a\/b/);
    played.tree.context.link.close(new BrigError("gone", { code: "sandbox.gone", reason: "closed" }));
    await expect(diffFork(played.fork, {})).rejects.toMatchObject({ code: "sandbox.gone" });
  });

  it("ends after 1 MiB", async () => {
    const names = ["a", "b", "c"];
    const played = await playedFork([], { now: names.map((name) => added(name)) });
    for (const name of names) played.tree.contents.set(`/merged/${name}`, `${"x".repeat(600_000)}\n`);
    const { files, text } = await diffFork(played.fork, {});
    expect(files).toHaveLength(3);
    expect(text).toContain("diff --git a/b b/b");
    expect(text).not.toContain("diff --git a/c b/c");
  });

  it("is of the paths that were asked for", async () => {
    const played = await playedFork([], { now: [added("a"), added("b")] });
    played.tree.contents.set("/merged/a", "").set("/merged/b", "b\n");
    const { files, text } = await diffFork(played.fork, { paths: ["b"] });
    expect(files).toEqual([{ path: "b", kind: "add" }]);
    expect(text).not.toContain("a/a");
  });
});

describe("a fork is applied to its parent", () => {
  async function apply(
    { fork, parent }: PlayedFork,
    { now = [], startedNs = 90n }: { now?: readonly Buffer[]; startedNs?: bigint } = {},
    options: ForkPathOptions = {},
  ) {
    parent.scans = [{ records: now, startedNs }];
    return await applyFork(fork, { tree: parent, changes: fork.point.parentChanges }, options);
  }

  const committed = (parent: PlayedTree) =>
    parent.committed().map(({ action, path, expects, content }) => `${action} ${path} ${expects} ${content}`);

  it("with what it has, if the parent has changed none of it", async () => {
    const atFork = [added("a", file), modified("b", file), deleted("c"), added("d", { type: 2 })];
    const played = await playedFork(atFork, {
      now: [
        added("a", { ino: 9n, size: 3n, uid: 7, gid: 8, mode: 0o4755, modifiedNs: 5n }),
        ...[deleted("b"), added("c", { size: 1n }), added("d", { type: 2, mode: 0o700 })],
        ...[added("e", { type: 2 }), added("f", { type: 3, target: "to" }), added("g", { type: 4 })],
        ...[modified("h", { size: 2n }), deleted("i", { type: 2 })],
      ],
    });
    played.tree.contents.set("/merged/a", "new").set("/merged/c", "c").set("/merged/h", "h!");
    const applied = await apply(played, { now: [...atFork, added("z")] });
    expect(applied).toEqual({
      kind: "applied",
      files: [
        ["a", "update"],
        ["b", "delete"],
        ["c", "add"],
        ["d", "update"],
        ["e", "add"],
        ["f", "add"],
        ["g", "add"],
        ["h", "update"],
        ["i", "delete"],
      ].map(([path, kind]) => ({ path, kind })),
    });
    expect(committed(played.parent)).toEqual([
      "put a older file 90 0",
      "remove b older file 90 0",
      "put c absent 1",
      `mkdir d older directory ${PARENT_NS} 0`,
      "mkdir e absent 0",
      "symlink f absent 0",
      "put h older file 90 2",
      `remove i older directory ${PARENT_NS} 0`,
    ]);
    expect(played.parent.staged()).toEqual({ 0: "new", 1: "c", 2: "h!" });
    expect(played.parent.committed()[0]).toMatchObject({ mode: 0o4755, owner: "7:8", modifiedNs: 5n });
    expect(played.parent.done().at(-1)).toBe("commit /merged");
    expect(played.tree.committed()).toEqual([]);
  });

  it("with nothing, if it has none", async () => {
    const played = await playedFork([], { now: [] });
    expect(await apply(played)).toEqual({ kind: "applied", files: [] });
    expect(played.parent.done()).toEqual(["changes /merged", "changes /merged"]);
  });

  it.each<[string, Buffer[], Buffer[]]>([
    ["it has changed the file again", [added("a", file)], [added("a", { ...file, changedNs: 9n })]],
    ["it has removed the file", [added("a", file)], []],
    ["it has made a file where none was", [], [added("a")]],
    ["it has removed the host's", [], [deleted("a")]],
    ["it has made a directory of it", [added("a", file)], [added("a", { type: 2 })]],
  ])("not if %s", async (_name, atFork, now) => {
    const played = await playedFork(atFork, { now: [added("a", { ino: 99n }), added("b")] });
    expect(await apply(played, { now })).toEqual({
      kind: "conflicts",
      conflicts: [{ path: "a", reason: "it was changed in the workspace since the fork" }],
    });
    expect(committed(played.parent)).toEqual([]);
  });

  it("not if the parent has removed the directory that it is in", async () => {
    const played = await playedFork([], { now: [modified("d/a")] });
    expect(await apply(played, { now: [deleted("d", { type: 2 })] })).toMatchObject({ kind: "conflicts" });
  });

  it("not if something comes up while it is", async () => {
    const played = await playedFork([], { now: [added("a")] });
    played.tree.contents.set("/merged/a", "").set("/merged/a", "x");
    played.tree.stats.set("/merged/a", { type: 1 });
    played.parent.answer = ({ operation }) =>
      operation === "commit" ? { result: commitResult({ conflicts: [[0, 1]] }) } : null;
    expect(await apply(played)).toEqual({
      kind: "conflicts",
      conflicts: [{ path: "a", reason: "it was created meanwhile" }],
    });
  });

  it("in part, if only some paths were asked for", async () => {
    const played = await playedFork([], { now: [added("a", { type: 2 }), added("b", { type: 2 })] });
    expect(await apply(played, {}, { paths: ["b"] })).toEqual({
      kind: "applied",
      files: [{ path: "b", kind: "add" }],
    });
    expect(committed(played.parent)).toEqual(["mkdir b absent 0"]);
  });

  it("not once the signal is aborted", async () => {
    const played = await playedFork([], { now: [added("a", { type: 2 })] });
    const signal = AbortSignal.abort(new Error("stop"));
    await expect(apply(played, {}, { signal })).rejects.toThrow("stop");
    expect((await playedTree()).done()).toEqual([]);
    expect(committed(played.parent)).toEqual([]);
  });
});
