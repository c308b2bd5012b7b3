import { Gate } from "../../lib/time/gate.js";
import type { ContentPiece } from "../files/file-request.js";
import { writeContent, writeFile } from "../files/files.js";
import { MERGED_PATH, type WorkspaceTree } from "../overlay/workspace-tree.js";
import type { CommandContext } from "../process/command.js";
import type { PresentState } from "../tree/tree-changes.js";
import {
  type CommitStage,
  type ConflictReasonName,
  commitTree,
  type Expected,
  makeStage,
  newStage,
  recoverTree,
  stagedPath,
  type TreeRecord,
} from "../tree/tree-commit.js";
import type { PathReason } from "./workspace-change.js";

export interface TreeCommit {
  records: readonly TreeRecord[];
  /** The contents that the records put; a record names one by its index. */
  contents: readonly (() => Promise<Content>)[];
  signal?: AbortSignal | undefined;
}

/**
 * Changes all these paths of a copy-on-write tree, or none. Commands may be running in it. Returns the paths
 * that are not in the expected state. Errors: `file.*`, those of reading the contents; nothing is changed
 * then.
 */
export async function commitInto(
  tree: WorkspaceTree,
  { records, contents, signal }: TreeCommit,
): Promise<PathReason[]> {
  if (records.length === 0) return [];
  const [keeper, target, stage] = [await tree.keeper(), MERGED_PATH, newStage()];
  try {
    await makeStage(keeper, { target, stage, signal });
    await stageContents(keeper, { target, stage, contents, signal });
  } catch (error) {
    await recoverTree(keeper, { target, stage });
    throw error;
  }
  const result = await commitTree(keeper, { target, stage, records, signal });
  if (result.committed) return [];
  return result.conflicts.map(({ path, reason }) => ({
    path: path.toString("utf8"),
    reason: conflictWords[reason],
  }));
}

/** Why a path could not be changed, as the end of a sentence about it. */
export const conflictWords: Readonly<Record<ConflictReasonName, string>> = {
  exists: "it was created meanwhile",
  missing: "it was deleted meanwhile",
  type: "it has become something else meanwhile",
  changed: "it, or something in it, was changed meanwhile",
  parent: "its directory is gone, or has become a symbolic link",
  mount: "it is on another file system",
  reserved: "brig uses names like this itself",
};

/**
 * The record of a commit that gives a path the state `now`. Null for a FIFO, a socket or a device, which a
 * commit cannot make.
 */
export function recordOf(
  path: Buffer,
  now: PresentState | null,
  { expects, content, isExact }: { expects: Expected; content: number; isExact: boolean },
): TreeRecord | null {
  if (now === null) return { path, expects, action: "remove" };
  const given = isExact ? { owner: { uid: now.uid, gid: now.gid }, modifiedNs: now.modifiedNs } : {};
  // The host gets no setuid, setgid or sticky bits.
  const mode = isExact ? now.mode : now.mode & 0o777;
  switch (now.type) {
    case "file":
      return { path, expects, action: "put", content, mode, ...given };
    case "directory":
      return { path, expects, action: "mkdir", mode, ...given };
    case "symlink":
      return { path, expects, action: "symlink", linkTarget: now.linkTarget ?? Buffer.alloc(0), ...given };
    default:
      return null;
  }
}

/** Files up to this size are read and written in one piece. */
export const SHORT_BYTES = 60 * 1024;
/** The number of files that are read or written at the same time. More do not make it faster. */
export const FILES_AT_ONCE = 8;

/** The content of a file: all of it, or its pieces without its holes. */
export type Content = Buffer | AsyncIterable<ContentPiece>;

/**
 * Writes contents to a commit's stage. The name of each is its index in the list. Errors: those of reading a
 * content and of writing it.
 */
export async function stageContents(
  context: CommandContext,
  {
    target,
    stage,
    contents,
    signal,
  }: {
    target: string;
    stage: CommitStage;
    contents: readonly (() => Promise<Content>)[];
    signal?: AbortSignal | undefined;
  },
): Promise<void> {
  const gate = new Gate();
  const failed = new AbortController();
  const write = async (open: () => Promise<Content>, at: number) => {
    failed.signal.throwIfAborted();
    const path = stagedPath({ target, stage }, at);
    const content = await open();
    if (Buffer.isBuffer(content))
      await writeFile(context, { path, data: content, mode: 0o600, refuseSymlinks: true, signal });
    else await writeContent(context, { path, content, mode: 0o600, signal });
  };
  const written = contents.map(async (open, at) => {
    try {
      await gate.pass(() => write(open, at), { width: FILES_AT_ONCE, signal });
    } catch (error) {
      // After a failure, no further content is read.
      failed.abort(error);
      throw error;
    }
  });
  // The caller may remove the stage after a failure, so every write must have ended before.
  await Promise.allSettled(written);
  await Promise.all(written);
}
