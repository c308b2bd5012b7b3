import { randomUUID } from "node:crypto";
import { readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { readTextFile } from "../../lib/bounded-file.js";
import { errnoOf } from "../../lib/errno.js";
import { makeDirectorySync } from "../../lib/files/make-directory.js";
import {
  nullish,
  readOrNull,
  type Shaped,
  strictObject,
  string,
  stringLike,
} from "../../lib/json/json-shape.js";
import { parseJson } from "../../lib/json/parse-json.js";
import { ownerOf, ownerShape, ownerState, readHostProcesses } from "../../lib/owner.js";
import { BASE_PATH, MERGED_PATH, type WorkspaceTree } from "../overlay/workspace-tree.js";
import type { CommandContext } from "../process/command.js";
import { type CommitStage, recoverTree } from "../tree/tree-commit.js";

/** The record of a running apply, or of a restore. If its process is gone, it was cut off. */
const recordShape = strictObject({
  workspace: stringLike(/^\//),
  /** The tree that it writes to. Default: to the workspace itself. */
  tree: nullish(string),
  stage: stringLike(/^\.brig-stage-[0-9a-f]+$/),
  /** The key of the stage, in hex. */
  key: stringLike(/^[0-9a-f]{64}$/),
  owner: ownerShape,
});

type ApplyRecord = Shaped<typeof recordShape>;

/** An apply whose process was killed. */
export interface UnfinishedApply {
  workspace: string;
  stage: CommitStage;
  /** Removes the record. Call it once the apply is undone. */
  forget(): void;
}

const RECORD_MAX_BYTES = 64 * 1024;

/**
 * Records an apply, before it writes to the workspace, so that it can be undone even if brig and the
 * container are both killed. Returns a function that removes the record. Throws the file system's own errors.
 */
export async function noteApply(
  brigHome: string,
  { workspace, stage, tree }: { workspace: string; stage: CommitStage; tree?: string },
): Promise<() => void> {
  const record: ApplyRecord = {
    ...{ workspace, tree },
    stage: stage.name,
    key: stage.key.toString("hex"),
    owner: await ownerOf(process.pid, await readHostProcesses(hostname())),
  };
  const directory = directoryIn(brigHome);
  makeDirectorySync(directory, { mode: 0o700 });
  const file = join(directory, `${randomUUID()}.json`);
  writeFileSync(`${file}.new`, `${JSON.stringify(record)}\n`, { mode: 0o600 });
  renameSync(`${file}.new`, file);
  return () => rmSync(file, { force: true });
}

/** Returns the applies whose process is certainly gone: all of them, or those to one workspace. */
export async function unfinishedApplies(brigHome: string, workspace?: string): Promise<UnfinishedApply[]> {
  const isMeant = (record: ApplyRecord) => workspace === undefined || record.workspace === workspace;
  return await unfinished(brigHome, (record) => (record.tree ?? null) === null && isMeant(record));
}

async function unfinished(
  brigHome: string,
  isWanted: (record: ApplyRecord) => boolean,
): Promise<UnfinishedApply[]> {
  const names = namesIn(directoryIn(brigHome)).filter((one) => one.endsWith(".json"));
  if (names.length === 0) return [];
  const processes = await readHostProcesses(hostname());
  const found: UnfinishedApply[] = [];
  for (const name of names) {
    const file = join(directoryIn(brigHome), name);
    const read = await readTextFile(file, RECORD_MAX_BYTES);
    const record = read.kind === "text" ? readOrNull(recordShape, parseJson(read.text)) : null;
    if (record === null || !isWanted(record)) continue;
    if ((await ownerState(record.owner, processes)) !== "gone") continue;
    const stage = { name: record.stage, key: Buffer.from(record.key, "hex") };
    found.push({ workspace: record.workspace, stage, forget: () => rmSync(file, { force: true }) });
  }
  return found;
}

function directoryIn(brigHome: string): string {
  return join(brigHome, "applies");
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return [];
    throw error;
  }
}

/**
 * Undoes the applies to the tree's workspace whose process was killed, so that no directory with new contents stays in
 * it. Errors: those of a start, `file.*`.
 */
export async function undoLeftApplies(tree: WorkspaceTree, brigHome: string): Promise<void> {
  const left = await unfinishedApplies(brigHome, tree.workspace);
  if (left.length > 0) await undoInNew(tree, left);
}

/** Undoes the restores of this tree whose process was killed. Errors: those of a start, `file.*`. */
export async function undoLeftRestores(tree: WorkspaceTree, brigHome: string): Promise<void> {
  for (const { stage, forget } of await unfinished(brigHome, (record) => record.tree === tree.id)) {
    await recoverTree(await tree.keeper(), { target: MERGED_PATH, stage });
    forget();
  }
}

/** Forgets the restores whose process was killed. Their trees are gone with it, but for those of which `isLeft` says otherwise. */
export async function forgetLeftRestores(brigHome: string, isLeft: (tree: string) => boolean): Promise<void> {
  const isOver = ({ tree }: ApplyRecord) => typeof tree === "string" && !isLeft(tree);
  for (const { forget } of await unfinished(brigHome, isOver)) forget();
}

type StagedApply = Pick<UnfinishedApply, "stage" | "forget">;

/** Undoes applies in a container of their own. Errors: those of a start, `file.*`. */
export async function undoInNew(tree: WorkspaceTree, applies: readonly StagedApply[]): Promise<void> {
  const applier = await tree.openApplier();
  try {
    await undoApplies(applier.context, applies);
  } finally {
    await applier.close();
  }
}

/** Errors: `file.*`. */
export async function undoApplies(context: CommandContext, applies: readonly StagedApply[]): Promise<void> {
  for (const { stage, forget } of applies) {
    await recoverTree(context, { target: BASE_PATH, stage });
    forget();
  }
}
