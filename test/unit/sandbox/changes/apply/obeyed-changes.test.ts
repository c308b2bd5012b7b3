import { describe, expect, it } from "vitest";
import { listEntry } from "../../channel/played-files.js";
import { added, modified, type PlayedTree } from "../../overlay/played-tree.js";
import { applyOf, treeWith } from "./apply-of.js";

const REASON = "git would take its directory for a repository, and obey it";

function list(tree: PlayedTree, directory: string, names: readonly string[]): void {
  tree.lists.set(
    directory,
    names.map((name) => listEntry(1, name)),
  );
}

describe("what an apply brings that programs obey", () => {
  it("is named with who obeys it, also if nothing is written", async () => {
    const records = [
      added(".github", { type: 3, target: "build" }),
      added(".vscode", { type: 2 }),
      added(".vscode/tasks.json", { size: 1n }),
      added("build", { type: 2 }),
      added("build/x", { size: 1n }),
      modified("sub/Makefile", { size: 1n }, { ino: 7n }),
    ];
    for (const dryRun of [false, true]) {
      const tree = await treeWith(records);
      for (const path of [".vscode/tasks.json", "build/x", "sub/Makefile"])
        tree.contents.set(`/merged/${path}`, "x");
      const { findings, applied } = await applyOf(tree, { dryRun });
      expect(applied).toHaveLength(6);
      expect(findings).toEqual([
        { path: ".github", obeyedBy: expect.any(String) },
        { path: ".vscode/tasks.json", obeyedBy: expect.stringContaining("VS Code") },
        { path: "sub/Makefile", obeyedBy: "make" },
      ]);
    }
  });

  it("is not named if nobody obeys it, or if it is not written", async () => {
    const tree = await treeWith([modified("Makefile", { type: 4 }), added("main.c")]);
    expect(await applyOf(tree, { dryRun: true })).toEqual({
      ...{ applied: ["main.c"], conflicts: [] },
      skipped: [{ path: "Makefile", reason: "it is a fifo" }],
    });
  });
});

describe("what git would take for a repository", () => {
  const repository = ["HEAD", "config", "objects", "refs"];
  const changesIn = (directory: string) => [
    added(directory, { type: 2 }),
    ...repository.map((name) =>
      added(`${directory}/${name}`, { type: name.length < 7 && name !== "refs" ? 1 : 2 }),
    ),
  ];

  it("is not applied, and all else is", async () => {
    const tree = await treeWith([added("a", { size: 1n }), ...changesIn("e.git"), added("z", { size: 1n })]);
    list(tree, "/merged/e.git", repository);
    tree.contents.set("/merged/a", "a").set("/merged/z", "z");
    const { applied, skipped, conflicts } = await applyOf(tree);
    expect([applied, conflicts]).toEqual([["a", "z"], []]);
    expect(skipped).toEqual(
      ["e.git", ...repository.map((name) => `e.git/${name}`)].map((path) => ({ path, reason: REASON })),
    );
    expect(tree.committed().map(({ path }) => path)).toEqual(["a", "z"]);
  });

  it.each<[string, readonly string[], readonly string[]]>([
    ["if the host has the other parts", ["HEAD"], ["objects", "refs"]],
    ["if another directory has its objects", ["HEAD", "commondir"], []],
    ["in any spelling", ["head", "Objects", "REFS"], []],
    ["if the host has all of it", ["config"], ["HEAD", "objects", "refs"]],
  ])("is not applied %s", async (_, inSandbox, onHost) => {
    const [first = ""] = inSandbox;
    const tree = await treeWith([added(`sub/e/${first}`)]);
    list(tree, "/merged/sub/e", inSandbox);
    list(tree, "/base/sub/e", onHost);
    expect(await applyOf(tree)).toMatchObject({
      applied: [],
      skipped: [{ path: `sub/e/${first}`, reason: REASON }],
    });
  });

  it("is nothing that only has such names in it", async () => {
    const tree = await treeWith([
      added("src/agent/config"),
      added("src/hooks/use.ts"),
      added("x/HEAD"),
      added("x/refs"),
    ]);
    list(tree, "/merged/src", ["config", "hooks"]);
    list(tree, "/merged/x", ["HEAD", "refs"]);
    expect((await applyOf(tree, { dryRun: true })).applied).toHaveLength(4);
  });

  it("is the workspace itself, unless it is a repository already", async () => {
    const changes = [added("HEAD"), added("objects/x"), added("plain"), added("refs/x")];
    const [tree, other] = [await treeWith(changes), await treeWith(changes)];
    list(tree, "/merged", ["HEAD", "objects", "refs", "plain"]);
    expect((await applyOf(tree, { dryRun: true })).applied).toEqual(["plain"]);
    for (const directory of ["/merged", "/base"]) list(other, directory, ["HEAD", "objects", "refs"]);
    expect((await applyOf(other, { dryRun: true })).applied).toHaveLength(4);
  });
});
