import { someAtOnce } from "../../lib/time/gate.js";
import type { Content } from "../files/file-request.js";
import { writeContent, writeFile } from "../files/files.js";
import { MERGED_PATH, type WorkspaceTree } from "../overlay/workspace-tree.js";
import type { CommandContext } from "../process/command.js";
import { occupiedBytes, type PresentState } from "../tree/tree-changes.js";
import {
  type CommitRequest,
  type CommitResult,
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
import { CopyCount } from "./copied-changes.js";
import type { PathReason } from "./workspace-change.js";

/** What a commit changes. */
export class Changing {
  readonly records: TreeRecord[] = [];
  /** The contents that the records put; a record names one by its index. */
  readonly contents: StagedContent[] = [];

  /**
   * Gives a path the state `now`. The content is that of a regular file. A FIFO, a socket or a device is left out, which a commit
   * cannot make.
   */
  add(
    path: Buffer,
    now: PresentState | null,
    {
      expects,
      content,
      isExact,
    }: { expects: Expected; content: (() => Promise<Content>) | null; isExact: boolean },
  ): void {
    const record = recordOf(path, now, { expects, content: this.contents.length, isExact });
    if (record !== null) this.records.push(record);
    if (record?.action === "put" && content !== null)
      this.contents.push({ open: content, sizeBytes: occupiedBytes(now) });
  }
}

/** A content that is read when its turn comes. */
export interface StagedContent {
  open: () => Promise<Content>;
  /** About how much it is, without holes. */
  sizeBytes: number;
}

/**
 * Changes all these paths of a copy-on-write tree, or none. Commands may be running in it. Returns the paths
 * that are not in the expected state. Errors: `file.*`, those of reading the contents; nothing is changed
 * then.
 */
export async function commitInto(
  tree: WorkspaceTree,
  { records, contents }: Pick<Changing, "records" | "contents">,
  { signal, note, count }: { signal?: AbortSignal | undefined; note?: NoteStage; count?: CopyCount } = {},
): Promise<PathReason[]> {
  if (records.length === 0) return [];
  const [keeper, place] = [await tree.keeper(), { target: MERGED_PATH, stage: newStage() }];
  const forget = await note?.(place.stage);
  await fillStage(keeper, { ...place, contents, count, signal, onUndone: forget });
  const placing = { ...place, records, signal, onPlaced: onPlaced(contents, count) };
  const result = await commitTree(keeper, placing).catch(async (error: unknown) => {
    // The keeper may have ended in the middle of it.
    const recovering = tree.keeper().then(async (next) => await recoverTree(next, place));
    await recovering.then(forget).catch(() => undefined);
    throw error;
  });
  forget?.();
  count?.placed();
  return conflictsOf(result);
}

/** Counts the contents of a commit that get their names. */
export function onPlaced(
  contents: Changing["contents"],
  count: CopyCount | undefined,
): CommitRequest["onPlaced"] {
  return count && ((placed) => count.place(placed, contents.length));
}

/** Notes a stage, so that another process can undo what was committed of it, until what this returns is called. */
type NoteStage = (stage: CommitStage) => Promise<() => void>;

/** The paths because of which nothing was written. */
export function conflictsOf(result: CommitResult): PathReason[] {
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

interface StageContents {
  target: string;
  stage: CommitStage;
  contents: Changing["contents"];
  /** Counts what is written. */
  count?: CopyCount | undefined;
  signal?: AbortSignal | undefined;
  /** Called after a failure, once there is no stage any more. */
  onUndone?: (() => void) | undefined;
}

/**
 * Makes a commit's stage and writes contents to it. The name of each is its index in the list. Errors: those of reading a
 * content and of writing it, and then the stage is removed again.
 */
export async function fillStage(context: CommandContext, staged: StageContents): Promise<void> {
  try {
    await makeStage(context, staged);
    await stageContents(context, staged);
  } catch (error) {
    await recoverTree(context, staged);
    staged.onUndone?.();
    throw error;
  }
}

export async function stageContents(
  context: CommandContext,
  { target, stage, contents, count = new CopyCount(undefined), signal }: StageContents,
): Promise<void> {
  count.expect(contents.map(({ sizeBytes }) => sizeBytes));
  const write = async ({ open, sizeBytes }: StagedContent, at: number) => {
    const path = stagedPath({ target, stage }, at);
    await count.file(sizeBytes, await open(), async (content) => {
      if (Buffer.isBuffer(content))
        await writeFile(context, { path, data: content, mode: 0o600, refuseSymlinks: true, signal });
      else await writeContent(context, { path, content, mode: 0o600, signal });
    });
  };
  await someAtOnce(contents, write, { width: FILES_AT_ONCE, signal });
}
