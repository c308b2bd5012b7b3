import { describe, expect, it } from "vitest";
import { diffWorkspace } from "../../../../src/sandbox/changes/diff-workspace.js";
import { LiveChanges } from "../../../../src/sandbox/changes/live-changes.js";
import type { WorkspaceChange } from "../../../../src/sandbox/changes/workspace-change.js";
import { SecretMask } from "../../../../src/sandbox/egress/secrets/secret-mask.js";
import { added, deleted, entry, modified, type PlayedTree, playedTree } from "../overlay/played-tree.js";

const MIB = 2 ** 20;

async function treeWith(
  records: readonly Buffer[],
  contents: Record<string, string | Buffer> = {},
): Promise<PlayedTree> {
  const tree = await playedTree();
  tree.scans = [{ records, notEntered: 2n }];
  for (const [path, content] of Object.entries(contents)) tree.contents.set(path, content);
  return tree;
}

type Options = Omit<Parameters<typeof diffWorkspace>[1], "withoutRepository">;

async function diff(tree: PlayedTree, options: Options & { withoutRepository?: boolean } = {}) {
  return await diffWorkspace(new LiveChanges(tree), { withoutRepository: false, ...options });
}

describe("a diff", () => {
  it("has each change with both sides and a patch", async () => {
    const records = [
      added("a", { size: 2n, mode: 0o755 }),
      deleted("b", { size: 2n }),
      modified("c", { size: 4n }, { size: 5n }),
    ];
    const tree = await treeWith(records, {
      "/merged/a": "a\n",
      "/base/b": "b\n",
      "/merged/c": "new\n",
      "/base/c": "old!\n",
    });
    const found = await diff(tree);
    expect(found).toMatchObject({ count: 3, tooLarge: 0, notEntered: 2 });
    expect(found.changes).toMatchObject([
      {
        ...{ path: "a", pathBytes: Buffer.from("a"), change: "added", isBinary: false },
        ...{ before: null, after: { type: "file", mode: 0o755, sizeBytes: 2 } },
        patch: expect.stringMatching(/^diff --git a\/a b\/a\nnew file mode 100755\n[\s\S]*\+a\n$/),
      },
      {
        ...{ path: "b", change: "deleted", before: { type: "file", mode: 0o644, sizeBytes: 2 }, after: null },
        patch: expect.stringMatching(/deleted file mode 100644\n[\s\S]*-b\n$/),
      },
      {
        ...{ path: "c", change: "modified", before: { sizeBytes: 5 }, after: { sizeBytes: 4 } },
        patch: expect.stringMatching(/-old!\n\+new\n$/),
      },
    ]);
    expect(Object.keys(found.changes[0]?.after ?? {}).sort()).toEqual(["mode", "sizeBytes", "type"]);
  });

  it("has binary files whole", async () => {
    const found = await diff(await treeWith([added("a")], { "/merged/a": Buffer.from([0, 1]) }));
    const patch = expect.stringContaining("GIT binary patch\nliteral 2\n");
    expect(found.changes).toMatchObject([{ isBinary: true, patch }]);
    const whenDeleted = await diff(await treeWith([deleted("a")], { "/base/a": Buffer.from([0, 1]) }));
    expect(whenDeleted.changes).toMatchObject([{ isBinary: true }]);
  });

  it("has links with their targets, and a file that becomes one as two parts", async () => {
    const tree = await treeWith([
      added("a", { type: 3, target: "to" }),
      deleted("b", { type: 3 }),
      modified("c", { type: 3, target: "there" }),
      modified("d", {}, { type: 3 }),
      modified("e", { type: 3, target: "y" }, { type: 3 }),
    ]);
    tree.contents.set("/base/c", "text\n").set("/merged/d", "text\n");
    for (const path of ["b", "d", "e"])
      tree.stats.set(`/base/${path}`, { type: 3, target: Buffer.from(`old-${path}`) });
    const [a, b, c, d, e] = (await diff(tree)).changes.map(({ patch }) => String(patch));
    expect(a).toMatch(/new file mode 120000\n[\s\S]*\+to\n/);
    expect(b).toMatch(/deleted file mode 120000\n[\s\S]*-old-b\n/);
    expect(c).toMatch(
      /deleted file mode 100644\n[\s\S]*-text\n[\s\S]*new file mode 120000\n[\s\S]*\+there\n/,
    );
    expect(d).toMatch(
      /deleted file mode 120000\n[\s\S]*-old-d\n[\s\S]*new file mode 100644\n[\s\S]*\+text\n/,
    );
    expect(e).toMatch(/-old-e\n[\s\S]*\+y\n/);
    expect(e).not.toMatch(/file mode/);
  });

  it("marks a file as executable by its owner's bit alone", async () => {
    const tree = await treeWith([added("a", { mode: 0o100 }), added("b", { mode: 0o611 })], {
      "/merged/a": "x",
      "/merged/b": "x",
    });
    const [a, b] = (await diff(tree)).changes.map(({ patch }) => String(patch));
    expect(a).toContain("mode 100755");
    expect(b).toContain("mode 100644");
  });

  it.each([
    ["a directory", added("a", { type: 2 })],
    ["a FIFO", added("a", { type: 4 })],
    ["a file of a repository's own", added("a/.git/x")],
    ["a link that git would refuse", added(".gitmodules", { type: 3, target: "x" })],
  ])("has no patch for %s, and reads nothing of it", async (_name, record) => {
    const tree = await treeWith([record]);
    expect((await diff(tree)).changes).toMatchObject([{ patch: null, isBinary: false }]);
    expect((await diff(tree, { maxPatchBytes: 0 })).tooLarge).toBe(0);
    expect(tree.done()).toEqual(["changes /merged", "changes /merged"]);
  });

  it("deletes each file of a directory that is gone, or is something else now", async () => {
    const below = [
      added(".git/config"),
      added("empty", { type: 2 }),
      added("l", { type: 3, target: "to" }),
      added("x", { size: 2n }),
    ];
    const patches = async (record: Buffer, options: Options = {}) => {
      const tree = await treeWith([record], {
        ...{ "/base/d/x": "x\n", "/merged/d": "now\n" },
        ...{ "/base/d/.git/config": "" },
      });
      tree.leftOut = ["d/mounted", "other"];
      tree.answer = ({ operation, path }) =>
        operation === "changes" && path.toString() === "/base/d"
          ? { output: below, result: scanOf(below.length) }
          : null;
      const found = await diff(tree, options);
      const scanned = tree.files.requests.filter(({ path }) => path.toString() === "/base/d");
      for (const { second, flags } of scanned)
        expect([second.toString(), flags]).toEqual(["/upper\0/base/d\0mounted\0", 2]);
      return found;
    };
    const gone =
      /^# left out: "d\/.git\/config"\ndiff --git a\/d\/l b\/d\/l\ndeleted file mode 120000[\s\S]*-to\n[\s\S]*a\/d\/x b\/d\/x\ndeleted[\s\S]*-x\n/;
    expect((await patches(deleted("d", { type: 2 }))).changes[0]?.patch).toMatch(gone);
    // Git leaves the repository, so no file can be made there.
    expect((await patches(modified("d", { size: 4n }, { type: 2 }))).changes).toMatchObject([
      { patch: null },
    ]);
    expect((await patches(modified("d", { type: 5 }, { type: 2 }))).changes[0]?.patch).toMatch(gone);
    for (const options of [{ maxFileBytes: 1 }, { maxPatchBytes: 100 }])
      expect(await patches(deleted("d", { type: 2 }), options)).toMatchObject({
        ...{ tooLarge: 1, count: 1 },
        changes: [{ patch: null }],
      });
  });

  it.each<[string, Record<string, Buffer[]>, boolean]>([
    [
      "files and directories of files",
      { d: [entry(2, "sub"), entry(3, "l")], "d/sub": [entry(1, "x")] },
      true,
    ],
    ["an empty directory", { d: [entry(2, "sub"), entry(3, "l")], "d/sub": [] }, false],
    ["a FIFO", { d: [entry(4, "p"), entry(3, "l")] }, false],
    ["nothing", { d: [] }, false],
  ])(
    "puts a file in the place of a directory with %s only if git empties that",
    async (_name, lists, has) => {
      const tree = await treeWith([modified("d", { size: 4n }, { type: 2 })], { "/merged/d": "now\n" });
      for (const [path, entries] of Object.entries(lists)) tree.lists.set(`/base/${path}`, entries);
      const below = [added("l", { type: 3, target: "to" })];
      tree.answer = ({ operation, path }) =>
        operation === "changes" && path.toString() === "/base/d"
          ? { output: below, result: scanOf(below.length) }
          : null;
      const [change] = (await diff(tree)).changes;
      const whole = /deleted file mode 120000[\s\S]*-to\n[\s\S]*new file mode 100644\n[\s\S]*\+now\n$/;
      expect(change?.patch ?? "").toMatch(has ? whole : /^$/);
    },
  );

  it("leaves out a file that is removed or replaced meanwhile", async () => {
    for (const errno of [2, 20, 40, 4096 + 2]) {
      const tree = await treeWith([added("a"), modified("b"), added("c")], { "/merged/c": "c\n" });
      tree.answer = ({ path }) => (path.includes("/c") ? null : path.includes("/merged/") ? { errno } : null);
      const found = await diff(tree);
      expect(found).toMatchObject({ count: 1, tooLarge: 0, changes: [{ path: "c" }] });
    }
  });

  it("may be without patches, and then reads nothing", async () => {
    const tree = await treeWith([added("a")]);
    const found = await diff(tree, { patches: false });
    expect(found).toMatchObject({ changes: [{ path: "a", patch: null }], count: 1, tooLarge: 0 });
    expect(tree.done()).toEqual(["changes /merged"]);
  });

  it("is of the paths that were asked for", async () => {
    const records = [".git/x", "a", "d/e"].map((path) => added(path));
    const paths = async (options: Parameters<typeof diff>[1]) =>
      (await diff(await treeWith(records), { patches: false, ...options })).changes.map(({ path }) => path);
    expect(await paths({})).toEqual([".git/x", "a", "d/e"]);
    expect(await paths({ withoutRepository: true })).toEqual(["a", "d/e"]);
    expect(await paths({ paths: ["d", "/repo/.git"] })).toEqual([".git/x", "d/e"]);
    await expect(paths({ paths: ["/other"] })).rejects.toMatchObject({ code: "usage.invalid" });
  });

  it("goes to whoever takes it, one after the other", async () => {
    const tree = await treeWith([added("a"), added("b")]);
    const events: string[] = [];
    const onChange = async ({ path }: WorkspaceChange) => {
      events.push(`begin ${path}`);
      await new Promise((resolve) => setImmediate(resolve));
      events.push(`end ${path}`);
    };
    expect(await diff(tree, { patches: false, onChange })).toMatchObject({ changes: [], count: 2 });
    expect(events).toEqual(["begin a", "end a", "begin b", "end b"]);
  });

  it("hides secrets in patches", async () => {
    const tree = await treeWith([added("a")], { "/merged/a": "key=supersecretvalue\n" });
    const mask = new SecretMask([{ value: "supersecretvalue" }]);
    const [change] = (await diff(tree, { mask })).changes;
    expect(change?.patch).toContain("+key=****************\n");
    expect((await diff(await treeWith([added("d", { type: 2 })]), { mask })).changes).toMatchObject([
      { patch: null },
    ]);
  });

  it("leaves out a binary file with a secret, which cannot be hidden in it", async () => {
    const mask = new SecretMask([{ value: "supersecretvalue" }]);
    for (const [record, path] of [
      [added("a"), "/merged/a"],
      [deleted("a"), "/base/a"],
    ] as const) {
      const tree = await treeWith([record], { [path]: "\0supersecretvalue" });
      expect((await diff(tree, { mask })).changes).toMatchObject([{ patch: null, isBinary: true }]);
      expect((await diff(tree)).changes).toMatchObject([{ patch: expect.stringContaining("literal") }]);
    }
  });

  it("fails if a file cannot be read, or the signal is aborted", async () => {
    const unreadable = await treeWith([added("a")]);
    unreadable.answer = ({ operation }) => (operation === "read" ? { errno: 5 } : null);
    await expect(diff(unreadable)).rejects.toMatchObject({ code: "file.failed", errno: "EIO" });
    const signal = AbortSignal.abort(new Error("stop"));
    await expect(diff(await treeWith([added("a")]), { signal })).rejects.toThrow("stop");
  });

  it("ends a read when the signal is aborted", async () => {
    const abort = new AbortController();
    const tree = await treeWith([added("a")]);
    tree.answer = ({ operation }) => {
      if (operation !== "read") return null;
      setImmediate(() => abort.abort(new Error("stop")));
      return { waitsForKill: true };
    };
    await expect(diff(tree, { signal: abort.signal })).rejects.toThrow("stop");
  });
});

describe("a file that is large", () => {
  it.each<[string, Buffer, number]>([
    ["of exactly 1 MiB", added("a", { size: BigInt(MIB) }), 0],
    ["of more than 1 MiB", added("a", { size: BigInt(MIB + 1) }), 1],
    ["that was of more than 1 MiB", modified("a", {}, { size: BigInt(MIB + 1) }), 1],
  ])("%s has a patch, or is counted", async (_name, record, tooLarge) => {
    const tree = await treeWith([record], { "/merged/a": "x", "/base/a": "x" });
    const found = await diff(tree);
    expect(found.tooLarge).toBe(tooLarge);
    expect(found.changes[0]?.patch === null).toBe(tooLarge === 1);
    expect(tree.done().length).toBe(tooLarge === 1 ? 1 : 2);
  });

  it("may be allowed, or not", async () => {
    const records = [added("a", { size: 5n })];
    const tree = await treeWith(records, { "/merged/a": "12345" });
    expect(await diff(tree, { maxFileBytes: 5 })).toMatchObject({ tooLarge: 0 });
    expect(await diff(tree, { maxFileBytes: 4 })).toMatchObject({ tooLarge: 1, changes: [{ patch: null }] });
  });

  it("because it has grown since the scan is counted", async () => {
    const tree = await treeWith([added("a", { size: 1n })], { "/merged/a": "12345" });
    expect(await diff(tree, { maxFileBytes: 4 })).toMatchObject({
      tooLarge: 1,
      changes: [{ patch: null, isBinary: false }],
    });
  });

  it("is no reason not to show a link of any length", async () => {
    const found = await diff(await treeWith([added("a", { type: 3, target: "long", size: 4n })]), {
      maxFileBytes: 1,
    });
    expect(found).toMatchObject({ tooLarge: 0, changes: [{ patch: expect.stringContaining("+long") }] });
  });

  it("as a patch leaves less for the others", async () => {
    const records = ["a", "b"].map((path) => added(path));
    const tree = () => treeWith(records, { "/merged/a": "x\n", "/merged/b": "ü\n" });
    const patches = (await diff(await tree())).changes.map(({ patch }) => Buffer.byteLength(patch ?? ""));
    const [one = 0, two = 0] = patches;
    const has = async (maxPatchBytes: number) => {
      const found = await diff(await tree(), { maxPatchBytes });
      return [...found.changes.map(({ patch }) => patch !== null), found.tooLarge];
    };
    expect(await has(one + two)).toEqual([true, true, 0]);
    expect(await has(one + two - 1)).toEqual([true, false, 1]);
    expect(await has(one - 1)).toEqual([false, false, 2]);
    expect(await has(0)).toEqual([false, false, 2]);
  });

  it("is not read once the patches are too large", async () => {
    const tree = await treeWith([added("a")], { "/merged/a": "x\n" });
    const length = Buffer.byteLength((await diff(tree)).changes[0]?.patch ?? "");
    const longer = await playedTree();
    longer.contents.set("/merged/a", "x\n").set("/merged/b", "y\n");
    longer.answer = (request) =>
      request.operation === "changes" ? { output: [added("a"), added("b")], result: scanOf(2) } : null;
    const found = await diff(longer, { maxPatchBytes: length });
    expect(found.changes.map(({ patch }) => patch !== null)).toEqual([true, false]);
    expect(found.tooLarge).toBe(1);
    expect((await diff(longer, { maxPatchBytes: 16 * MIB })).tooLarge).toBe(0);
  });
});

function scanOf(count: number): Buffer {
  const result = Buffer.alloc(64);
  result.writeBigUInt64LE(BigInt(count), 8);
  return result;
}

it("the patches may have 16 MiB together, and no more", async () => {
  const names = Array.from({ length: 17 }, (_, at) => `f${at + 10}`);
  const diffOf = async (sizes: readonly number[]) => {
    const tree = await treeWith(names.map((name) => added(name)));
    for (const [at, name] of names.entries())
      tree.contents.set(`/merged/${name}`, `${"x".repeat((sizes[at] ?? 1) - 1)}\n`);
    return await diff(tree);
  };
  const overhead = Buffer.byteLength((await diffOf([])).changes[0]?.patch ?? "") - 1;
  const each = Math.floor((16 * MIB) / 17) - overhead;
  const last = 16 * MIB - 16 * (each + overhead) - overhead;
  const sizes = (more: number) => names.map((_, at) => (at < 16 ? each : last + more));
  expect((await diffOf(sizes(0))).tooLarge).toBe(0);
  expect((await diffOf(sizes(1))).tooLarge).toBe(1);
});
