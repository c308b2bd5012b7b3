import { describe, expect, it } from "vitest";
import { disarmRepositories } from "../../../../src/sandbox/receipt/disarm-repositories.js";
import type { Finding } from "../../../../src/sandbox/receipt/receipt.js";
import { listEntry } from "../channel/played-files.js";
import { type PlayedTree, playedTree } from "../overlay/played-tree.js";

const finding = (path: string, reason: Finding["reasons"][number] = "runs"): Finding => ({
  ...{ path, reasons: [reason], mode: 0o644, uid: 0, sizeBytes: 1, sha256: null, isNeutralised: false },
});

/** A repository at /w/sub/.git, with these lists and contents below it. */
async function repository(
  lists: Record<string, readonly string[]>,
  contents: Record<string, string>,
): Promise<PlayedTree> {
  const tree = await playedTree();
  for (const [path, names] of Object.entries(lists))
    tree.lists.set(
      path,
      names.map((name) => listEntry(1, name)),
    );
  for (const [path, content] of Object.entries(contents)) tree.contents.set(path, content);
  return tree;
}

async function disarm(tree: PlayedTree, findings = [finding("/w/sub/.git", "repository")]) {
  const place = { context: tree.context, roots: ["/w"], signal: new AbortController().signal };
  const found = await disarmRepositories(findings, place);
  const done = tree.files.requests
    .filter(({ operation }) => operation === "rename" || operation === "remove" || operation === "write")
    .map(({ operation, path, mode, second }) =>
      operation === "write" ? `write ${path} ${mode.toString(8)} ${second}` : `${operation} ${path}`,
    );
  return { done, neutralised: found.filter(({ isNeutralised }) => isNeutralised).map(({ path }) => path) };
}

describe("a repository that was not there when the session began", () => {
  it("keeps its settings but for those that name programs, and its hooks but for their right to be run", async () => {
    const tree = await repository(
      { "/w/sub/.git": ["HEAD", "config", "hooks"], "/w/sub/.git/hooks": ["pre-commit", "pre-push.sample"] },
      {
        "/w/sub/.git/config": "[core]\n\tbare = false\n\tfsmonitor = touch canary\n",
        "/w/sub/.git/hooks/pre-commit": "#!/bin/sh\n",
      },
    );
    const findings = [
      finding("/w/sub/.git", "repository"),
      finding("/w/sub/.git/config"),
      finding("/w/sub/.git/hooks/pre-commit"),
      finding("/w/Makefile"),
    ];
    expect(await disarm(tree, findings)).toEqual({
      done: [
        "rename /w/sub/.git/config",
        'write /w/sub/.git/config 644 [core]\n\tbare = "false"\n',
        "remove /w/sub/.git/hooks/pre-commit",
        "write /w/sub/.git/hooks/pre-commit 644 #!/bin/sh\n",
      ],
      neutralised: ["/w/sub/.git/config", "/w/sub/.git/hooks/pre-commit"],
    });
    for (const { flags, operation } of tree.files.requests)
      if (operation !== "list") expect(flags & 128).toBe(128);
  });

  it("stays as it is if git would run nothing from it", async () => {
    const tree = await repository(
      { "/w/sub/.git": ["HEAD", "config", "hooks"], "/w/sub/.git/hooks": ["pre-push.sample"] },
      { "/w/sub/.git/config": "[core]\n\tbare = false\n" },
    );
    expect(await disarm(tree)).toEqual({ done: [], neutralised: [] });
  });

  it("is also disarmed in the directory that has its settings, if that is in the workspace", async () => {
    const tree = await repository(
      { "/w/x": ["HEAD", "commondir"], "/w/data": ["config", "objects"] },
      { "/w/x/commondir": "../data\n", "/w/data/config": "[alias]\n\tx = !y\n" },
    );
    const { done, neutralised } = await disarm(tree, [
      finding("/w/x", "repository"),
      finding("/w/data/config"),
    ]);
    expect(done).toContain("rename /w/data/config");
    expect(done).toContain("write /w/data/config 644 ");
    expect(neutralised).toEqual(["/w/data/config"]);
    tree.contents.set("/w/x/commondir", "/etc");
    expect((await disarm(tree, [finding("/w/x", "repository")])).done.join()).not.toContain("/etc");
  });

  it("loses settings that cannot be read, and hooks that are no files or too many", async () => {
    const many = Array.from({ length: 51 }, (_, at) => `${at}`);
    const tree = await repository(
      { "/w/a": ["config", "hooks"], "/w/a/hooks": ["link"], "/w/b": ["hooks"], "/w/b/hooks": many },
      {},
    );
    const findings = [finding("/w/a", "repository"), finding("/w/b", "repository")];
    const { done } = await disarm(tree, findings);
    expect(done.filter((line) => line.startsWith("write"))).toEqual([]);
    expect(done).toContain("rename /w/a/config");
    expect(done).toContain("rename /w/a/hooks/link");
    expect(done).toContain("rename /w/b/hooks");
  });

  it("is not said to be disarmed if it cannot be changed", async () => {
    const tree = await repository(
      { "/w/sub/.git": ["config"] },
      { "/w/sub/.git/config": "[core]\n\tfsmonitor = x\n" },
    );
    tree.answer = ({ operation }) => (operation === "rename" ? { errno: 16 } : null);
    expect((await disarm(tree)).neutralised).toEqual([]);
  });

  it("is left alone if it is none", async () => {
    const tree = await repository({}, {});
    expect(await disarm(tree, [finding("/w/Makefile")])).toEqual({ done: [], neutralised: [] });
  });
});
