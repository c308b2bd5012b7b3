import { basename, join } from "node:path";
import { isBrigError } from "../../errors.js";
import { isRepository, REPOSITORY_PARTS } from "../git/find-repositories.js";
import { BASE_PATH, type WorkspaceTree } from "../overlay/workspace-tree.js";
import { isAtOrBelow, isBelow } from "../plan/paths.js";
import type { CommandContext } from "../process/command.js";
import { whoObeys } from "../receipt/obeyed-names.js";
import { commitTree, type Expected, isStage, newStage, recoverTree } from "../tree/tree-commit.js";
import { noteApply, undoApplies, undoInNew, unfinishedApplies } from "./apply-records.js";
import { Changing, conflictsOf, fillStage, onPlaced } from "./commit.js";
import { CopyCount } from "./copied-changes.js";
import { hostConflict } from "./host-conflict.js";
import type { LiveChanges } from "./live-changes.js";
import {
  type ApplyOptions,
  type ApplyResult,
  type ObeyedPath,
  type PathChoice,
  type PathReason,
  pathFilter,
  type SeenChange,
} from "./workspace-change.js";

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
  {
    tree,
    changes,
    brigHome,
    options: { signal, onCopied },
    context,
  }: ApplyRequest & { context: CommandContext },
): Promise<PathReason[]> {
  const target = BASE_PATH;
  await undoApplies(context, await unfinishedApplies(brigHome, tree.workspace));
  const stage = newStage();
  const forget = await noteApply(brigHome, { workspace: tree.workspace, stage });
  const changing = new Changing();
  for (const change of wanted) {
    const content = () => changes.content(change, signal);
    changing.add(change.path, change.now, { expects: expectedAt(change), content, isExact: false });
  }
  const { records, contents } = changing;
  const count = new CopyCount(onCopied);
  await fillStage(context, { target, stage, contents, count, signal, onUndone: forget });
  const placing = { target, stage, records, signal, onPlaced: onCopied && onPlaced(contents, count) };
  const result = await commitTree(context, placing).catch(async (error: unknown) => {
    // Nothing was changed, but the stage may still exist. Only somebody with its key may remove it.
    if (isBrigError(error, "sandbox.gone")) await undoInNew(tree, [{ stage, forget }]);
    else await recoverTree(context, { target, stage });
    forget();
    throw error;
  });
  forget();
  count.placed();
  return conflictsOf(result);
}

/** The state that a commit expects at a path: the one that the scan has found there. */
function expectedAt({ before, now, base }: SeenChange): Expected {
  if (before === null) return "absent";
  if (before.type === "directory" && now?.type !== "directory")
    return { type: before.type, notSinceNs: base.unchangedNs };
  return before;
}

interface Protection {
  /** Names at the top of the workspace that are never written, such as ".codex". */
  protectedNames: readonly string[];
  /** Paths in the workspace where something else is mounted in the sandbox. */
  leftOut: readonly string[];
}

/** Says why a change is never made on the host; null if it may be made. */
export function whyNotApplied(change: SeenChange, { protectedNames, leftOut }: Protection): string | null {
  const path = change.path.toString("utf8");
  const names = path.split("/").map((name) => name.toLowerCase());
  // A repository's configuration can name programs that git runs. Compared in lower case, because on some
  // file systems `.GIT` is the same directory.
  if (names.includes(".git")) return "it belongs to a git repository's own files";
  if (isStage(change.path)) return "brig uses names like this itself";
  const top = protectedNames.find((name) => name.toLowerCase() === names[0]);
  if (top !== undefined) return `${top} is a protected name`;
  if (leftOut.some((mounted) => isAtOrBelow(path, mounted))) return "it is protected";
  const { before, now } = change;
  const removesDirectory = before?.type === "directory" && now?.type !== "directory";
  const inside = removesDirectory ? leftOut.find((mounted) => isBelow(mounted, path)) : undefined;
  if (inside !== undefined) return `it has something protected in it: ${inside}`;
  if (now === null || now.type === "file" || now.type === "directory" || now.type === "symlink") return null;
  return `it is a ${now.type}`;
}

/** Names in a repository that git obeys, besides those by which it recognises one. */
const OBEYED_PARTS: ReadonlySet<string> = new Set([
  ...REPOSITORY_PARTS,
  "config",
  "config.worktree",
  "gitdir",
  "hooks",
  "info",
  "modules",
  "worktrees",
]);

/**
 * The directories, relative to the workspace, that git would take for repositories once these changes were made, and
 * in which at least one of them is. A name counts that the sandbox or the host has: not all changes need be made. The
 * workspace itself is "" and is none of them if the host's is a repository already.
 */
async function repositoriesAmong(
  changes: LiveChanges,
  paths: readonly Buffer[],
  signal: AbortSignal | undefined,
): Promise<string[]> {
  const candidates = new Set(paths.flatMap((path) => directoriesOfParts(path.toString("latin1"))));
  const found: string[] = [];
  for (const directory of candidates) {
    const path = Buffer.from(directory, "latin1");
    const inSandbox = await changes.namesAt(path, { in: "sandbox", signal });
    const onHost = await changes.namesAt(path, { in: "host", signal });
    const isAlready = directory === "" && isRepository(partsOf(onHost));
    if (!isAlready && isRepository(partsOf([...inSandbox, ...onHost]))) found.push(directory);
  }
  return found;
}

/** Whether a change at this path, byte for byte as Latin-1, is in such a directory, or is one. */
function isInRepository(path: string, repositories: readonly string[]): boolean {
  return repositories.some((directory) => {
    if (directory === "") return OBEYED_PARTS.has((path.split("/")[0] ?? "").toLowerCase());
    return path === directory || path.startsWith(`${directory}/`);
  });
}

function directoriesOfParts(path: string): string[] {
  const names = path.split("/");
  return names.flatMap((name, at) =>
    OBEYED_PARTS.has(name.toLowerCase()) ? [names.slice(0, at).join("/")] : [],
  );
}

function partsOf(names: readonly string[]): ReadonlySet<string> {
  return new Set(names.map((name) => name.toLowerCase()));
}
