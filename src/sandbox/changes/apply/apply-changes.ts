import { basename, join } from "node:path";
import { isBrigError } from "../../../errors.js";
import { BASE_PATH, type WorkspaceTree } from "../../overlay/workspace-tree.js";
import type { CommandContext } from "../../process/start-command.js";
import { whoObeys } from "../../receipt/obeyed/obeyed-names.js";
import type { Expected, TreeRecord } from "../../tree/commit-records.js";
import { type CommitStage, makeStage, newStage } from "../../tree/commit-stage.js";
import { commitTree, recoverTree } from "../../tree/tree-commit.js";
import { conflictWords } from "../commit/conflict-words.js";
import { recordOf } from "../commit/records.js";
import { type Content, stageContents } from "../commit/stage-contents.js";
import { hostConflict } from "../host-conflict.js";
import type { LiveChanges } from "../live-changes.js";
import { type PathChoice, pathFilter } from "../path-filter.js";
import type { SeenChange } from "../seen-change.js";
import type { ApplyOptions, ApplyResult, ObeyedPath, PathReason } from "../workspace-change.js";
import { noteApply, unfinishedApplies } from "./apply-records.js";
import { isInRepository, repositoriesAmong } from "./repositories.js";
import { type Protection, whyNotApplied } from "./unapplied.js";

export interface ApplyRequest {
  tree: WorkspaceTree;
  changes: LiveChanges;
  brigHome: string;
  protectedNames: readonly string[];
  options: ApplyOptions & PathChoice;
  /** Called with the paths that were written, once the changes are known to be the host's. */
  onApplied?: ((paths: readonly Buffer[]) => Promise<void>) | undefined;
}

/** Makes the requested changes in the host's workspace: all of them, or none. Errors: as `Sandbox.apply`. */
export async function applyChanges(request: ApplyRequest): Promise<ApplyResult> {
  const { tree, changes, options, protectedNames } = request;
  const { signal, dryRun = false } = options;
  const sorted = await sortChanges(changes, {
    options,
    protection: { protectedNames, leftOut: tree.leftOut },
  });
  const { wanted, conflicts, skipped } = await withoutRepositories(changes, sorted, signal);
  if (conflicts.length > 0) return { applied: [], conflicts, skipped };
  const applied = wanted.map(({ path }) => path.toString("utf8"));
  const obeyed = obeyedPaths(wanted, changes.workspace);
  const result = { applied, conflicts, skipped, ...(obeyed.length > 0 && { findings: obeyed }) };
  if (dryRun || wanted.length === 0) return result;
  const applier = await tree.openApplier({ signal });
  try {
    const found = await commitChanges(wanted, { ...request, context: applier.context });
    if (found.length > 0) return { applied: [], conflicts: found, skipped };
  } finally {
    await applier.close();
  }
  const paths = wanted.map(({ path }) => path);
  await changes.rebase(paths);
  await request.onApplied?.(paths);
  return result;
}

interface SortedChanges {
  wanted: SeenChange[];
  conflicts: PathReason[];
  skipped: PathReason[];
}

async function sortChanges(
  changes: LiveChanges,
  { options, protection }: { options: ApplyOptions & PathChoice; protection: Protection },
): Promise<SortedChanges> {
  const isAsked = pathFilter(changes.workspace, options);
  const sorted: SortedChanges = { wanted: [], conflicts: [], skipped: [] };
  const taken = new Set<SeenChange>();
  let parents: SeenChange[] = [];
  await changes.scan({
    signal: options.signal,
    onChanges(some) {
      for (const change of some) {
        parents = parents.filter((parent) => isInside(change.path, parent.path));
        const above = parents;
        if (change.now?.type === "directory") parents = [...parents, change];
        if (!isAsked(change.path)) continue;
        // A file in a new directory needs that directory, even if it was not asked for.
        for (const one of [...above, change]) {
          if (!taken.has(one)) sortOne(one, sorted, protection);
          taken.add(one);
        }
      }
    },
  });
  return sorted;
}

function sortOne(change: SeenChange, { wanted, conflicts, skipped }: SortedChanges, protection: Protection) {
  const path = change.path.toString("utf8");
  const why = whyNotApplied(change, protection);
  if (why !== null) {
    skipped.push({ path, reason: why });
    return;
  }
  const conflict = hostConflict(change);
  if (conflict === null) wanted.push(change);
  else conflicts.push({ path, reason: conflict });
}

/** Changes by which git would take a directory for a repository are as those of a `.git`. */
async function withoutRepositories(
  changes: LiveChanges,
  sorted: SortedChanges,
  signal: AbortSignal | undefined,
): Promise<SortedChanges> {
  const made = sorted.wanted.filter(({ now }) => now !== null).map(({ path }) => path);
  const repositories = await repositoriesAmong(changes, made, signal);
  if (repositories.length === 0) return sorted;
  const isRefused = ({ path, now }: SeenChange) =>
    now !== null && isInRepository(path.toString("latin1"), repositories);
  const refused = sorted.wanted.filter(isRefused).map(({ path }) => ({
    path: path.toString("utf8"),
    reason: "git would take its directory for a repository, and obey it",
  }));
  return {
    ...sorted,
    wanted: sorted.wanted.filter((change) => !isRefused(change)),
    skipped: [...sorted.skipped, ...refused].toSorted((a, b) =>
      Buffer.compare(Buffer.from(a.path), Buffer.from(b.path)),
    ),
  };
}

function obeyedPaths(wanted: readonly SeenChange[], workspace: string): ObeyedPath[] {
  return wanted.flatMap(({ path: bytes, now }) => {
    if (now?.type !== "file" && now?.type !== "symlink") return [];
    const path = bytes.toString("utf8");
    const obeyedBy = whoObeys(join(basename(workspace), path), now.type);
    return obeyedBy === null ? [] : [{ path, obeyedBy }];
  });
}

function isInside(path: Buffer, directory: Buffer): boolean {
  return path.length > directory.length && path[directory.length] === 0x2f && path.indexOf(directory) === 0;
}

/** Returns the conflicts that have come up since the scan. */
async function commitChanges(
  wanted: readonly SeenChange[],
  { tree, changes, brigHome, options: { signal }, context }: ApplyRequest & { context: CommandContext },
): Promise<PathReason[]> {
  const target = BASE_PATH;
  await undoUnfinished(tree.workspace, { brigHome, context });
  const stage = newStage();
  const forget = await noteApply(brigHome, { workspace: tree.workspace, stage });
  const contents: (() => Promise<Content>)[] = [];
  const records: TreeRecord[] = [];
  for (const change of wanted) {
    const given = { expects: expectedAt(change), content: contents.length, isExact: false };
    const record = recordOf(change.path, change.now, given);
    if (record !== null) records.push(record);
    if (record?.action === "put") contents.push(() => changes.content(change, signal));
  }
  try {
    await makeStage(context, { target, stage, signal });
    await stageContents(context, { target, stage, contents, signal });
  } catch (error) {
    await recoverTree(context, { target, stage });
    forget();
    throw error;
  }
  const result = await commitTree(context, { target, stage, records, signal }).catch(
    async (error: unknown) => {
      // Nothing was changed, but the stage may still exist. Only somebody with its key may remove it.
      if (isBrigError(error, "sandbox.gone")) await undoApply(tree, stage);
      else await recoverTree(context, { target, stage });
      forget();
      throw error;
    },
  );
  forget();
  if (result.committed) return [];
  return result.conflicts.map(({ path, reason }) => ({
    path: path.toString("utf8"),
    reason: conflictWords[reason],
  }));
}

/** Undoes an apply whose container has died, in a new container. Errors: `file.*`. */
export async function undoApply(tree: WorkspaceTree, stage: CommitStage): Promise<void> {
  const applier = await tree.openApplier();
  try {
    await recoverTree(applier.context, { target: BASE_PATH, stage });
  } finally {
    await applier.close();
  }
}

/** The state that a commit expects at a path: the one that the scan has found there. */
function expectedAt({ before, now, base }: SeenChange): Expected {
  if (before === null) return "absent";
  if (before.type === "directory" && now?.type !== "directory")
    return { type: before.type, notSinceNs: base.unchangedNs };
  return before;
}

async function undoUnfinished(
  workspace: string,
  { brigHome, context }: { brigHome: string; context: CommandContext },
): Promise<void> {
  for (const { stage, forget } of await unfinishedApplies(brigHome, workspace)) {
    await recoverTree(context, { target: BASE_PATH, stage });
    forget();
  }
}
