import { describe, expect, it } from "vitest";
import {
  commitInto,
  conflictWords,
  recordOf,
  stageContents,
} from "../../../../src/sandbox/changes/commit.js";
import { ConflictReason } from "../../../../src/sandbox/channel/protocol.js";
import type { Content } from "../../../../src/sandbox/files/file-request.js";
import type { TreeRecord } from "../../../../src/sandbox/tree/tree-commit.js";
import { commitResult } from "../channel/played-files.js";
import { playedTree, presentState } from "../overlay/played-tree.js";
import { contentIn } from "../snapshots/content-text.js";

/** A content of unknown size. */
const staged = (open: () => Promise<Content>) => ({ open, sizeBytes: 0 });
const put = (path: string, content: number): TreeRecord => ({
  ...{ action: "put", path, content, mode: 0o644, expects: "any" },
});
const text = (content: string) => staged(async () => Buffer.from(content));

describe("a commit into a tree", () => {
  it("stages its contents and commits them", async () => {
    const tree = await playedTree();
    const records = [put("b", 0), put("a", 1)];
    expect(await commitInto(tree, { records, contents: [text("0"), text("1")] })).toEqual([]);
    expect(tree.done().toSorted()).toEqual([
      ...["commit /merged", "mkdir /merged/STAGE"],
      ...["write /merged/STAGE/0", "write /merged/STAGE/1"],
    ]);
    expect(tree.done().at(-1)).toBe("commit /merged");
    expect(tree.staged()).toEqual({ 0: "0", 1: "1" });
    expect(tree.committed().map(({ path, content }) => [path, content])).toEqual([
      ["a", 1],
      ["b", 0],
    ]);
  });

  it("of nothing asks for nothing", async () => {
    const tree = await playedTree();
    expect(await commitInto(tree, { records: [], contents: [] })).toEqual([]);
    expect(tree.done()).toEqual([]);
  });

  it("says in words which paths are not as expected", async () => {
    const tree = await playedTree();
    const reasons = Object.entries(ConflictReason);
    const records = reasons.map(([name]) => put(name, 0));
    const sorted = reasons.map(([name]) => name).toSorted();
    const conflicts = sorted.map(
      (name, at) => [at, ConflictReason[name as keyof typeof ConflictReason]] as const,
    );
    tree.answer = ({ operation }) =>
      operation === "commit" ? { result: commitResult({ conflicts }) } : null;
    expect(await commitInto(tree, { records, contents: [] })).toEqual(
      sorted.map((path) => ({ path, reason: conflictWords[path as keyof typeof conflictWords] })),
    );
  });

  it("removes its stage when a content cannot be staged, and reports that", async () => {
    const tree = await playedTree();
    const contents = [
      staged(async () => {
        throw new Error("unreadable");
      }),
    ];
    await expect(commitInto(tree, { records: [put("a", 0)], contents })).rejects.toThrow("unreadable");
    expect(tree.done()).toEqual(["mkdir /merged/STAGE", "recover /merged"]);
    const [made, recovered] = tree.files.requests;
    expect(`/merged/${recovered?.second.subarray(32)}`).toBe(made?.path.toString());
  });

  it("removes its stage when it could not be made, or the signal is aborted", async () => {
    const tree = await playedTree();
    tree.answer = ({ operation }) => (operation === "mkdir" ? { errno: 28 } : null);
    await expect(commitInto(tree, { records: [put("a", 0)], contents: [] })).rejects.toMatchObject({
      errno: "ENOSPC",
    });
    expect(tree.done()).toEqual(["mkdir /merged/STAGE", "recover /merged"]);
    const other = await playedTree();
    const signal = AbortSignal.abort(new Error("stop"));
    const change = { records: [put("a", 0)], contents: [] };
    await expect(commitInto(other, change, { signal })).rejects.toThrow("stop");
    expect(other.done()).toEqual(["recover /merged"]);
  });

  it("that fails reports that", async () => {
    const tree = await playedTree();
    tree.answer = ({ operation }) => (operation === "commit" ? { errno: 28 } : null);
    await expect(commitInto(tree, { records: [put("a", 0)], contents: [] })).rejects.toMatchObject({
      errno: "ENOSPC",
    });
  });
});

describe("staged contents", () => {
  const stage = { name: ".brig-stage-0123456789abcdef", key: Buffer.alloc(32) };

  it("are written in one piece, or as they come, for nobody else to read", async () => {
    const tree = await playedTree();
    const pieces = staged(async () => contentIn("a", "b"));
    await stageContents(tree.context, { target: "/t", stage, contents: [text("whole"), pieces] });
    expect(tree.staged()).toEqual({ 0: "whole", 1: "ab" });
    expect(tree.files.requests.map(({ mode }) => mode)).toEqual([0o600, 0o600]);
    expect(tree.files.requests.map(({ flags }) => flags & 128)).toEqual([128, 128]);
  });

  it("are eight at a time", async () => {
    const tree = await playedTree();
    let [open, most] = [0, 0];
    const content = async (): Promise<Content> => {
      most = Math.max(most, ++open);
      await new Promise((resolve) => setImmediate(resolve));
      open--;
      return Buffer.from("x");
    };
    const contents = Array.from({ length: 20 }, () => staged(content));
    await stageContents(tree.context, { target: "/t", stage, contents });
    expect(Object.keys(tree.staged())).toHaveLength(20);
    expect(most).toBe(8);
  });

  it("are not read after a failure, and all writes have ended by then", async () => {
    const tree = await playedTree();
    let [reads, written] = [0, 0];
    const slow = async () => {
      reads++;
      return (async function* () {
        yield* contentIn("x");
        await new Promise((resolve) => setImmediate(resolve));
        written++;
      })();
    };
    const fails = async () => {
      throw new Error("unreadable");
    };
    const contents = [slow, fails, ...Array.from({ length: 20 }, () => slow)].map(staged);
    const staging = stageContents(tree.context, { target: "/t", stage, contents });
    await expect(staging).rejects.toThrow("unreadable");
    expect(reads).toBeLessThan(10);
    expect(written).toBe(reads);
    expect(Object.keys(tree.staged())).toHaveLength(reads);
  });

  it("are not written once the signal is aborted", async () => {
    const tree = await playedTree();
    const signal = AbortSignal.abort(new Error("stop"));
    const staging = stageContents(tree.context, { target: "/t", stage, contents: [text("a")], signal });
    await expect(staging).rejects.toThrow("stop");
    expect(tree.done()).toEqual([]);
  });
});

describe("the record of a path", () => {
  const path = Buffer.from("p");
  const given = { expects: "absent", content: 3 } as const;
  const state = { mode: 0o7755, uid: 1, gid: 2, modifiedNs: 9n };
  const exact = { owner: { uid: 1, gid: 2 }, modifiedNs: 9n };

  it("removes what is not there any more", () => {
    expect(recordOf(path, null, { ...given, isExact: true })).toEqual({
      path,
      expects: "absent",
      action: "remove",
    });
  });

  it.each([
    ["file", { action: "put", content: 3, mode: 0o7755 }],
    ["directory", { action: "mkdir", mode: 0o7755 }],
    ["symlink", { action: "symlink", linkTarget: Buffer.from("to") }],
  ] as const)("makes a %s", (type, expected) => {
    const now = presentState({ ...state, type, linkTarget: type === "symlink" ? Buffer.from("to") : null });
    const common = { path, expects: "absent", ...expected };
    expect(recordOf(path, now, { ...given, isExact: true })).toEqual({ ...common, ...exact });
    const plain = "mode" in common ? { ...common, mode: 0o755 } : common;
    expect(recordOf(path, now, { ...given, isExact: false })).toEqual(plain);
  });

  it("has no target of a link whose target is not known", () => {
    const now = presentState({ type: "symlink" });
    expect(recordOf(path, now, { ...given, isExact: false })).toMatchObject({ linkTarget: Buffer.alloc(0) });
  });

  it.each(["fifo", "socket", "char-device", "block-device", "unknown"] as const)("makes no %s", (type) => {
    expect(recordOf(path, presentState({ type }), { ...given, isExact: true })).toBeNull();
  });
});
