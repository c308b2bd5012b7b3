import { BASE_PATH, type WorkspaceTree } from "../../overlay/workspace-tree.js";
import { recoverTree } from "../../tree/tree-commit.js";
import { unfinishedApplies } from "./apply-records.js";

/**
 * Undoes the applies to the tree's workspace whose process was killed, so that no directory with new contents stays in
 * it. Errors: those of a start, `file.*`.
 */
export async function undoLeftApplies(tree: WorkspaceTree, brigHome: string): Promise<void> {
  const left = await unfinishedApplies(brigHome, tree.workspace);
  if (left.length === 0) return;
  const applier = await tree.openApplier();
  try {
    for (const { stage, forget } of left) {
      await recoverTree(applier.context, { target: BASE_PATH, stage });
      forget();
    }
  } finally {
    await applier.close();
  }
}
