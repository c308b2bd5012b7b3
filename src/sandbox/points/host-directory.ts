import type { Content } from "../changes/commit/stage-contents.js";
import { relativeTo } from "../changes/path-key.js";
import { fileContent } from "../files/file-content.js";
import { BASE_PATH, below, MERGED_PATH } from "../overlay/workspace-tree.js";
import { makeStage, newStage } from "../tree/commit-stage.js";
import { scanChanges } from "../tree/tree-changes.js";
import { recoverTree } from "../tree/tree-commit.js";
import type { PresentState } from "../tree/tree-state.js";
import type { TreeNow, Wanted } from "./wanted.js";

/** Lists everything that the host has in a directory, at any depth. Errors: those of a scan. */
export async function hostDirectory(path: Buffer, now: TreeNow): Promise<Wanted[]> {
  const { tree, signal } = now;
  const keeper = await tree.keeper();
  const [target, stage] = [MERGED_PATH, newStage()];
  const found: Wanted[] = [];
  // A scan against an empty directory reports every path as added.
  await makeStage(keeper, { target, stage, signal });
  try {
    const directory = below(BASE_PATH, path);
    await scanChanges(keeper, {
      base: `${target}/${stage.name}`,
      merged: directory,
      upper: directory,
      leftOut: tree.leftOut.flatMap((name) => relativeTo(path, Buffer.from(name)) ?? []),
      signal,
      onChanges(changes) {
        for (const { path: inside, now: state } of changes)
          if (state !== null) found.push(wanted(Buffer.concat([path, slash, inside]), state, now));
      },
    });
  } finally {
    await recoverTree(keeper, { target, stage });
  }
  return found;
}

function wanted(path: Buffer, state: PresentState, now: TreeNow): Wanted {
  const isFile = state.type === "file";
  return { path, now: state, content: isFile ? async () => await hostContent(state, path, now) : null };
}

/** Reads the content of one of the host's files. */
export async function hostContent(
  { sizeBytes }: Pick<PresentState, "sizeBytes">,
  path: Buffer,
  { tree, signal }: Pick<TreeNow, "tree" | "signal">,
): Promise<Content> {
  return fileContent(await tree.keeper(), below(BASE_PATH, path), { lengthBytes: sizeBytes, signal });
}

const slash = Buffer.from("/");
