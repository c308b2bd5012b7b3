import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { LiveChanges } from "../../../../src/sandbox/changes/live-changes.js";
import { TreePoints } from "../../../../src/sandbox/points/tree-points.js";
import { openSnapshot } from "../../../../src/sandbox/snapshots/snapshot-store.js";
import { ChangeParser, leftOutOf, type TreeChange } from "../../../../src/sandbox/tree/tree-changes.js";
import { type PlayedTree, playedTree } from "../overlay/played-tree.js";
import { contentText } from "../snapshots/content-text.js";

export interface PlayedPoints {
  tree: PlayedTree;
  points: TreePoints;
  brigHome: string;
  /** What was warned of. */
  warnings: unknown[];
  /**
   * The tree has these changes from now on: records of a scan. Each scan says when it began, 100 ns after the one before; a scan since a
   * time reports what has a later time, and what was deleted.
   */
  has(...records: readonly Buffer[]): void;
}

/** The restore points of a played tree. */
export async function playedPoints(): Promise<PlayedPoints> {
  const brigHome = newHome();
  const tree = await playedTree();
  const warnings: unknown[] = [];
  const changes = new LiveChanges(tree);
  const points = new TreePoints({ tree, changes, brigHome, warn: (warning) => void warnings.push(warning) });
  let scanned = 1000n;
  let current: readonly Buffer[] = [];
  tree.answer = ({ operation, offset }) => {
    if (operation !== "changes") return null;
    scanned += 100n;
    const [reported, left]: [Buffer[], TreeChange[]] = [[], []];
    for (const record of current) {
      const [change] = new ChangeParser().push(record);
      if (change === undefined) continue;
      if (change.now !== null && change.now.changedNs < offset) left.push(change);
      else if (change.now === null && offset > 0n && known.has(change.path.toString("latin1")))
        left.push(change);
      else reported.push(record);
      if (change.now === null) known.add(change.path.toString("latin1"));
    }
    const { count, sha256 } = leftOutOf(left);
    const head = Buffer.alloc(32);
    head.writeBigInt64LE(scanned, 0);
    head.writeBigUInt64LE(BigInt(reported.length), 8);
    head.writeBigUInt64LE(BigInt(count), 16);
    return { output: reported, result: Buffer.concat([head, Buffer.from(sha256, "hex")]) };
  };
  const known = new Set<string>();
  return {
    ...{ tree, points, brigHome, warnings },
    has(...records) {
      current = records;
    },
  };
}

export function newHome(): string {
  const home = mkdtempSync(join(tmpdir(), "brig-points-"));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  return home;
}

/** What a snapshot has at one of its points: each path with its content. */
export async function storedAt(brigHome: string, point?: number, id = "tree"): Promise<string[]> {
  const snapshot = await openSnapshot(brigHome, id, { point });
  const found: string[] = [];
  for await (const { change, sha256 } of snapshot.entries()) {
    const content = sha256 === null ? "" : `=${await contentText(snapshot.contents.read(sha256))}`;
    found.push(`${change.change} ${change.path.toString("latin1")}${content}`);
  }
  return found;
}
