import { describe, expect, it } from "vitest";
import { LiveChanges } from "../../../../src/sandbox/changes/live-changes.js";
import { restoreSnapshot } from "../../../../src/sandbox/changes/sandbox-changes.js";
import type { TouchedPath } from "../../../../src/sandbox/changes/workspace-change.js";
import { ContentStore } from "../../../../src/sandbox/snapshots/content-store.js";
import { commitResult } from "../channel/played-files.js";
import { baseState, playedTree, presentState } from "../overlay/played-tree.js";
import { newHome } from "./played-points.js";
import { baseAt, bytes, entryOf, hostBase, scanOf, snapshotOf, storeWith } from "./stored-entries.js";

describe("a snapshot is restored to a fresh tree", () => {
  it("with all that it has, and the bases of its changes", async () => {
    const { store, ids } = await storeWith("one");
    const tree = await playedTree();
    const changes = new LiveChanges(tree);
    const state = presentState({ mode: 0o4711, uid: 3, gid: 4, modifiedNs: 9n });
    const entries = [
      entryOf("a", state, { sha256: ids[0] ?? null, base: { state: "unknown", unchangedNs: 8n } }),
      entryOf("d", presentState({ type: "directory" })),
      ...[entryOf("f", presentState({ type: "fifo" })), entryOf("g", null)],
      entryOf("l", presentState({ type: "symlink", linkTarget: Buffer.from("to") })),
    ];
    const bases = [baseAt("h"), baseAt("x", { state: baseState(), baseSha256: ids[0] ?? null })];
    await restoreSnapshot(snapshotOf(entries, store, bases), { tree, changes });
    expect(
      tree.committed().map(({ action, path, expects, owner }) => `${action} ${path} ${expects} ${owner}`),
    ).toEqual([
      ...["put a any 3:4", "mkdir d any 0:0", "remove g any null", "remove h any null"],
      ...["symlink l any 0:0", "put x any 0:0"],
    ]);
    expect(tree.committed()[0]).toMatchObject({ mode: 0o4711, modifiedNs: 9n });
    expect(tree.staged()).toEqual({ 0: "one", 1: "one" });
    expect(changes.baseOf(bytes("a"))).toEqual({ state: "unknown", unchangedNs: 8n });
    expect(changes.baseOf(bytes("h"))).toEqual(hostBase);
  });

  it("and begins with what it had, and what it had written of the host's", async () => {
    const { store } = await storeWith();
    const tree = await playedTree();
    const changes = new LiveChanges(tree);
    const bases = [baseAt("written"), baseAt("p", { state: baseState({ type: "fifo" }) })];
    const start = await restoreSnapshot(snapshotOf([entryOf("g", null)], store, bases), { tree, changes });
    const touched = ["written", "p"].map(
      (path) =>
        ({
          path: bytes(path),
          change: "modified",
          now: presentState(),
          before: baseState(),
        }) as unknown as TouchedPath,
    );
    const contents = new ContentStore(newHome());
    const found = await start({ scan: scanOf(...touched), changes, contents, signal: undefined });
    expect(found.map(({ change }) => `${change.change} ${change.path}`)).toEqual([
      "deleted g",
      "deleted written",
    ]);
  });

  it("not if a path cannot be written, or the signal is aborted", async () => {
    const { store } = await storeWith();
    const tree = await playedTree();
    const snapshot = snapshotOf([entryOf("g", null)], store);
    tree.answer = ({ operation }) =>
      operation === "commit" ? { result: commitResult({ conflicts: [[0, 6]] }) } : null;
    const changes = new LiveChanges(tree);
    await expect(restoreSnapshot(snapshot, { tree, changes })).rejects.toMatchObject({
      code: "snapshot.invalid",
      message:
        'the state of the workspace could not be made again: "g" cannot be written, since it is on another file system',
    });
    const signal = AbortSignal.abort(new Error("stop"));
    await expect(restoreSnapshot(snapshot, { tree, changes, signal })).rejects.toThrow("stop");
  });
});
