import { randomUUID } from "node:crypto";
import { BrigError, isBrigError } from "../../errors.js";
import { readCurrentProcess } from "../../lib/file-lock.js";
import { ownerState } from "../../lib/owner.js";
import { type OpenedSandbox, openSandbox, type StartOptions } from "../open-sandbox.js";
import { SharedTree } from "../overlay/shared-tree.js";
import type { WorkspaceTree } from "../overlay/workspace-tree.js";
import { pointsOf } from "../points/sandbox-points.js";
import { type StartState, startOfFork, startOfSnapshot } from "../points/start.js";
import { wantedPaths } from "../points/wanted.js";
import { loadPolicy } from "../policy/load-policy.js";
import { DEFAULT_MODE } from "../policy/modes.js";
import type { CommandContext } from "../process/command.js";
import type { KeptChanges } from "../receipt/receipt.js";
import { recordedNow } from "../sandbox-records.js";
import type { SandboxSettings } from "../settings/sandbox-settings.js";
import { forgetRescue } from "../snapshots/rescued.js";
import {
  lockPoints,
  openPointLog,
  openSnapshot,
  removeSnapshot,
  type StoredSnapshot,
  storing,
} from "../snapshots/snapshot-store.js";
import { applyChanges } from "./apply.js";
import { forgetLeftRestores, undoInNew, unfinishedApplies } from "./apply-records.js";
import { Changing, commitInto } from "./commit.js";
import { CopyCount } from "./copied-changes.js";
import { diffWorkspace } from "./diff-workspace.js";
import { type Fork, fillFork, readParent } from "./fork.js";
import { applyFork, diffFork } from "./fork-changes.js";
import type { LiveChanges } from "./live-changes.js";
import { changesOf, type Opened, requireTree, takeSnapshot } from "./take-snapshot.js";
import {
  type ApplyOptions,
  type ApplyResult,
  type CloseOptions,
  type DiffOptions,
  type ForkApplied,
  type ForkDiff,
  type ForkOptions,
  type ForkPathOptions,
  isOfRepository,
  keyOf,
  type PathReason,
  type Snapshot,
  type SnapshotOptions,
  type WorkspaceDiff,
} from "./workspace-change.js";

const forks = new WeakMap<WorkspaceTree, Fork>();

export async function diffSandbox(opened: Opened, options: DiffOptions): Promise<WorkspaceDiff> {
  const changes = changesOf(requireTree(opened, "diff"));
  const { mask } = opened.settings.inspection ?? {};
  return await diffWorkspace(changes, { ...options, mask, withoutRepository: opened.branch !== null });
}

/** If the workspace has restore points, there is another one afterwards, in which these paths are no changes. */
export async function applySandbox(opened: Opened, options: ApplyOptions): Promise<ApplyResult> {
  const points = pointsOf(opened, "apply");
  const take = async (kind: "call" | "applied") => {
    const { onCopied } = options;
    const count = points.count(onCopied);
    if (points.taken.length > 0)
      await points.alone(() => points.take({ kind, count, signal: undefined }), { onCopied });
  };
  if (options.dryRun !== true) await take("call");
  // The host's files are changed by then, whatever becomes of the point.
  return await applyIn(opened, options, () => take("applied").catch(opened.warn));
}

/** The same for the changes of a session that has ended: those that were applied are no changes of it any more. */
export async function applyKept(opened: Opened, id: string, options: ApplyOptions): Promise<ApplyResult> {
  const { brigHome } = opened.settings.environment;
  const changes = changesOf(requireTree(opened, "apply"));
  return await applyIn(opened, options, async (paths) => {
    await storing(brigHome, () => markApplied({ brigHome, id, paths, changes })).catch(opened.warn);
  });
}

async function applyIn(
  opened: Opened,
  options: ApplyOptions,
  onApplied: (paths: readonly Buffer[]) => Promise<void>,
): Promise<ApplyResult> {
  const tree = requireTree(opened, "apply");
  const { policy } = opened.settings.policy;
  const ordinary = await loadPolicy(DEFAULT_MODE);
  return await applyChanges({
    tree,
    changes: changesOf(tree),
    brigHome: opened.settings.environment.brigHome,
    protectedNames: [...policy.workspace.protected, ...ordinary.policy.workspace.protected],
    options: { ...options, withoutRepository: opened.branch !== null },
    onApplied,
  });
}

export async function snapshotSandbox(opened: Opened, options: SnapshotOptions): Promise<Snapshot> {
  const { brigHome } = opened.settings.environment;
  const { snapshot } = await take(opened, { ...options, method: "snapshot" });
  return publicSnapshot(brigHome, snapshot);
}

/**
 * Stores the changes of a session when its sandbox closes, as a snapshot with the id of its tree. Returns
 * null if nothing was changed. Each sandbox of the session replaces the snapshot of the one before.
 */
export async function keepChanges(
  opened: Opened,
  { onCopied }: CloseOptions = {},
): Promise<KeptChanges | null> {
  const { brigHome } = opened.settings.environment;
  const { id } = requireTree(opened, "close");
  const points = pointsOf(opened, "close");
  // An earlier sandbox of the session may have failed to store its state.
  const forget = async () => await forgetRescue(brigHome, id).catch(() => undefined);
  if (points.taken.length > 0) {
    const count = await points.alone(() => points.takeLast(onCopied), { onCopied });
    await forget();
    const repositoryCount = [...points.state.values()].filter(({ change }) =>
      isOfRepository(change.path),
    ).length;
    return keptChanges(opened, { count, repositoryCount });
  }
  const kept = keptChanges(opened, await take(opened, { id, method: "close", onCopied }));
  if (kept === null) await removeSnapshot(brigHome, id);
  await forget();
  return kept;
}

/** Commits arrive as a branch, so what belongs to the repository counts only where nothing can be committed. */
function keptChanges(
  opened: Opened,
  { count, repositoryCount }: { count: number; repositoryCount: number },
): KeptChanges | null {
  const { id, workspace } = requireTree(opened, "close");
  const shown = opened.branch === null ? count : count - repositoryCount;
  return shown === 0 ? null : { snapshot: id, workspace, count: shown };
}

/** Opens another sandbox with the same settings, whose workspace has the state that this one has now. */
export async function forkSandbox(
  opened: Opened & Pick<OpenedSandbox, "link">,
  { signal, onProgress, onCopied, lasting }: ForkOptions & Pick<StartOptions, "lasting">,
): Promise<OpenedSandbox> {
  const { settings, options, engine, plan } = opened;
  const [tree, shared] = [requireTree(opened, "fork"), settings.overlay];
  if (shared?.isOpen !== true)
    throw new BrigError("the sandbox was closed", { code: "sandbox.gone", reason: "closed" });
  const leaseSeconds = settings.keep ? 0 : settings.leaseSeconds;
  const parentChanges = changesOf(tree);
  let made: { point: Fork["point"] } | undefined;
  // The containers of the new sandbox start while the state of this one is read.
  const begin = () => {
    // The ping fails if this sandbox is closed, but its tree is not because another fork uses it.
    const reading = Promise.all([readParent(parentChanges, signal), opened.link.ping()]);
    reading.catch(() => undefined);
    return async (keeper: CommandContext) => {
      const [state] = await reading;
      const fork = await fillFork(keeper, state, { signal, onCopied });
      made = { point: { ...fork, parent: tree, parentChanges, parentNs: state.readNs } };
    };
  };
  const overlay = new SharedTree({ leaseSeconds, origin: { plan, tree, shared, begin } });
  const forked = { ...settings, branch: settings.branch?.another(), overlay };
  shared.hold();
  try {
    const own = { lasting, engine, signal, onProgress };
    const other = await openSandbox(forked, { ...options, ...own, onCopied: undefined });
    if (made !== undefined) rememberFork(other, made.point);
    return other;
  } finally {
    await shared.release().catch(opened.warn);
  }
}

function rememberFork(forked: OpenedSandbox, point: Fork["point"]): void {
  const tree = requireTree(forked, "fork");
  const changes = changesOf(tree);
  for (const { path, base } of point.entries.values()) changes.setBase(path, base);
  forks.set(tree, { tree, changes, point, withoutRepository: forked.branch !== null });
  pointsOf(forked, "fork").startFrom(startOfFork(tree, point));
}

export async function diffOfFork(opened: Opened, options: ForkPathOptions): Promise<ForkDiff> {
  const { files, text } = await diffFork(requireFork(opened, "changesSinceFork"), options);
  return { files, text: opened.settings.inspection?.mask?.text(text) ?? text };
}

/** Error: `workspace.invalid` if it is not a fork of that sandbox. */
export async function applyForkTo(
  opened: Opened,
  parent: Opened,
  options: ForkPathOptions,
): Promise<ForkApplied> {
  const fork = requireFork(opened, "applyTo");
  const tree = requireTree(parent, "applyTo");
  if (fork.point.parent === tree) return await applyFork(fork, { tree, changes: changesOf(tree) }, options);
  throw new BrigError("the sandbox was not forked from this one", {
    code: "workspace.invalid",
    hint: "apply it to the sandbox whose fork method made it, or to the host with apply",
  });
}

function requireFork(opened: Opened, method: string): Fork {
  const fork = forks.get(requireTree(opened, method));
  if (fork !== undefined) return fork;
  throw new BrigError(`sandbox.${method} is for a fork, and this sandbox is none`, {
    code: "workspace.invalid",
    hint: "the method fork of another sandbox makes one",
  });
}

/**
 * Opens a sandbox whose workspace is that of a snapshot, at its last point or at this one. Errors:
 * `snapshot.unknown`, `snapshot.invalid`, `workspace.conflict`.
 */
export async function openFromSnapshot(
  settings: (workspace: string) => Promise<SandboxSettings>,
  { id, at, brigHome, start }: { id: string; at?: number | undefined; brigHome: string; start: StartOptions },
): Promise<OpenedSandbox> {
  const snapshot = await openSnapshot(brigHome, id, { point: at });
  const opened = await openSandbox(await settings(snapshot.head.workspace), start);
  try {
    await restoreInto(opened, snapshot, start);
    return opened;
  } catch (error) {
    await discard(opened, error);
    throw error;
  }
}

/**
 * Undoes every apply whose process was killed, and returns the workspaces. `open` opens a sandbox with a
 * copy-on-write workspace. If a workspace no longer exists, there is nothing to undo, and its record is
 * removed. Errors: those of a start, `file.*`.
 */
export async function undoKilledApplies(
  brigHome: string,
  open: (workspace: string) => Promise<OpenedSandbox>,
): Promise<string[]> {
  const undone: string[] = [];
  const trees = new Set(recordedNow(brigHome).map(({ sessionId }) => sessionId));
  await forgetLeftRestores(brigHome, (tree) => trees.has(tree));
  for (const { workspace, stage, forget } of await unfinishedApplies(brigHome)) {
    const opened = await open(workspace).catch((error: unknown) => {
      if (isBrigError(error, "workspace.invalid")) return null;
      throw error;
    });
    if (opened !== null) {
      try {
        await undoInNew(requireTree(opened, "apply"), [{ stage, forget }]);
      } finally {
        await discard(opened, null);
      }
      undone.push(workspace);
    }
    forget();
  }
  return undone;
}

/** Stores what was changed, as it is when the sandbox closes, below another directory than `$BRIG_HOME`. Returns its id. */
export async function storeChangesIn(
  brigHome: string,
  opened: Opened,
  { maxBytes }: { maxBytes: number },
): Promise<string> {
  const { id } = requireTree(opened, "close");
  await take(opened, { id, method: "close", brigHome, maxBytes });
  return id;
}

async function take(
  opened: Opened,
  {
    id = randomUUID(),
    maxBytes,
    signal,
    onCopied,
    method,
    brigHome = opened.settings.environment.brigHome,
  }: SnapshotOptions & { method: string; brigHome?: string },
): ReturnType<typeof takeSnapshot> {
  const changes = changesOf(requireTree(opened, method));
  const stored = { brigHome, id, createdAt: new Date(), maxBytes, signal, onCopied };
  return await takeSnapshot(changes, stored);
}

function publicSnapshot(brigHome: string, { head }: StoredSnapshot): Snapshot {
  return {
    id: head.id,
    workspace: head.workspace,
    createdAt: new Date(head.createdAt),
    remove: async () => await removeSnapshot(brigHome, head.id),
  };
}

async function restoreInto(
  opened: OpenedSandbox,
  snapshot: StoredSnapshot,
  { signal, onCopied }: Pick<StartOptions, "signal" | "onCopied">,
): Promise<void> {
  const tree = requireTree(opened, "create");
  pointsOf(opened, "create").startFrom(
    await restoreSnapshot(snapshot, { tree, changes: changesOf(tree), signal, onCopied }),
  );
}

/** Closes a sandbox that is not returned to anybody. */
async function discard({ link, release, warn }: OpenedSandbox, cause: unknown): Promise<void> {
  link.close(
    new BrigError("the start of the sandbox failed", { code: "sandbox.gone", reason: "closed", cause }),
  );
  await release({ isEnding: false }).catch(warn);
}

interface AppliedRequest {
  brigHome: string;
  id: string;
  paths: readonly Buffer[];
  /** The changes of the sandbox that they were applied from. It knows what the host has now. */
  changes: LiveChanges;
}

const WAIT_MS = 10_000;

/**
 * Notes in a kept state that these paths were brought to the host, so that they are no changes any more. While
 * the session goes on, nothing is noted: it will find out itself. Errors: `snapshot.*`, those of the file system.
 */
export async function markApplied({ brigHome, id, paths, changes }: AppliedRequest): Promise<void> {
  const currentProcess = await readCurrentProcess();
  const { owner } = (await openSnapshot(brigHome, id)).head;
  if (owner != null && (await ownerState(owner, currentProcess.processes)) !== "gone") return;
  using lock = await lockPoints(brigHome, id, { currentProcess, waitMs: WAIT_MS });
  if (lock === null) return;
  const kept = new Set<string>();
  for await (const { change } of (await openSnapshot(brigHome, id)).entries()) kept.add(keyOf(change.path));
  const entries = paths
    .filter((path) => kept.has(keyOf(path)))
    .map((path) => ({ path, same: true as const, base: changes.baseOf(path) }));
  if (entries.length === 0) return;
  const { points } = await openPointLog(brigHome, id);
  await points.append({ at: new Date().toISOString(), kind: "applied" }, entries);
}

/**
 * Makes a sandbox's fresh copy-on-write workspace the one of a snapshot. Before any command runs. FIFOs,
 * sockets and devices are not made again. Returns the state that its restore points begin with. Errors: `snapshot.invalid`, `file.*`, `workspace.conflict`.
 */
export async function restoreSnapshot(
  snapshot: StoredSnapshot,
  {
    tree,
    changes,
    signal,
    onCopied,
  }: { tree: WorkspaceTree; changes: LiveChanges } & Pick<StartOptions, "signal" | "onCopied">,
): Promise<StartState> {
  for await (const { change, base } of snapshot.entries()) changes.setBase(change.path, base);
  for (const { path, hostBase } of snapshot.bases) changes.setBase(path, hostBase);
  const changing = new Changing();
  const now = { tree, state: new Map(), touched: new Map(), isFresh: true, signal };
  const wanted = await wantedPaths(snapshot, now);
  for (const { path, now: state, content } of wanted)
    changing.add(path, state, { expects: "any", content, isExact: true });
  const conflicts = await commitInto(tree, changing, { signal, count: new CopyCount(onCopied) });
  if (conflicts.length > 0) throw notRestored(conflicts[0]);
  const written = new Set(wanted.map(({ path }) => keyOf(path)));
  return startOfSnapshot(
    snapshot,
    snapshot.bases.filter(({ path }) => written.has(keyOf(path))),
  );
}

function notRestored(conflict: PathReason | undefined): BrigError {
  const why =
    conflict === undefined
      ? ""
      : `: ${JSON.stringify(conflict.path)} cannot be written, since ${conflict.reason}`;
  return new BrigError(`the state of the workspace could not be made again${why}`, {
    code: "snapshot.invalid",
  });
}
