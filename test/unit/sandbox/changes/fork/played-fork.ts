import type { Fork } from "../../../../../src/sandbox/changes/fork.js";
import { LiveChanges } from "../../../../../src/sandbox/changes/live-changes.js";
import { keyOf, type SeenChange } from "../../../../../src/sandbox/changes/workspace-change.js";
import type { FileStamp } from "../../../../../src/sandbox/tree/tree-changes.js";
import { type PlayedTree, playedTree } from "../../overlay/played-tree.js";

export interface PlayedFork {
  fork: Fork;
  /** Of the fork. */
  tree: PlayedTree;
  parent: PlayedTree;
}

/** The time at which the state of the parent was read. */
export const PARENT_NS = 60n;

/**
 * A fork of a workspace that had made these changes: records of a scan. Each file and link that the fork has taken over from it has its
 * inode number and times, with 1000 added to the number.
 */
export async function playedFork(
  atFork: readonly Buffer[],
  { now, withoutRepository = false }: { now: readonly Buffer[]; withoutRepository?: boolean },
): Promise<PlayedFork> {
  const [tree, parent] = [await playedTree(), await playedTree()];
  parent.scans = [{ records: atFork, startedNs: PARENT_NS }];
  tree.scans = [{ records: now }];
  const [changes, parentChanges] = [new LiveChanges(tree), new LiveChanges(parent)];
  const entries = new Map<string, SeenChange>();
  const own = new Map<string, FileStamp>();
  await parentChanges.scan({
    onChanges(some) {
      for (const change of some) {
        entries.set(keyOf(change.path), change);
        if (change.now !== null && change.now.type !== "directory")
          own.set(keyOf(change.path), { ...change.now, ino: change.now.ino + 1000n });
      }
    },
  });
  for (const { path, base } of entries.values()) changes.setBase(path, base);
  const point = { entries, own, parent, parentChanges, parentNs: PARENT_NS };
  return { fork: { tree, changes, point, withoutRepository }, tree, parent };
}
