import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { type ApplyRequest, applyChanges } from "../../../../../src/sandbox/changes/apply.js";
import { LiveChanges } from "../../../../../src/sandbox/changes/live-changes.js";
import type { ApplyResult } from "../../../../../src/sandbox/changes/workspace-change.js";
import { type PlayedTree, playedTree } from "../../overlay/played-tree.js";

export function newHome(): string {
  const home = mkdtempSync(join(tmpdir(), "brig-apply-"));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  return home;
}

/** The names of the files in which applies are noted. */
export function notesIn(home: string): string[] {
  return existsSync(join(home, "applies")) ? readdirSync(join(home, "applies")) : [];
}

export async function treeWith(records: readonly Buffer[]): Promise<PlayedTree> {
  const tree = await playedTree();
  tree.scans = [{ records }];
  return tree;
}

/** Applies the changes of a tree in which ".codex" is protected. */
export async function applyOf(
  tree: PlayedTree,
  { brigHome = newHome(), ...options }: Partial<ApplyRequest["options"]> & { brigHome?: string } = {},
  request: Partial<ApplyRequest> = {},
): Promise<ApplyResult> {
  return await applyChanges({
    ...{ tree, changes: new LiveChanges(tree), brigHome, protectedNames: [".codex"] },
    options: { withoutRepository: false, ...options },
    ...request,
  });
}
