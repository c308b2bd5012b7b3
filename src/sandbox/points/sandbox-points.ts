import { BrigError } from "../../errors.js";
import { pause } from "../../lib/time/pause.js";
import { noteApply } from "../changes/apply-records.js";
import { Changing, commitInto } from "../changes/commit.js";
import type { CopyCount } from "../changes/copied-changes.js";
import { changesOf, type Opened, requireTree, sizesOfFiles } from "../changes/take-snapshot.js";
import { keyOf, type PathReason } from "../changes/workspace-change.js";
import { MERGED_PATH, type WorkspaceTree } from "../overlay/workspace-tree.js";
import { openSnapshot } from "../snapshots/snapshot-store.js";
import type { PresentState } from "../tree/tree-changes.js";
import type { CommitStage, Expected } from "../tree/tree-commit.js";
import type { RestorePoint, RestorePointOptions, UndoneCall } from "./restore-point.js";
import type { TouchedScan } from "./touched-paths.js";
import { type TakenPoint, TreePoints, tooLarge } from "./tree-points.js";
import { statIn, type TreeNow, wantedPaths } from "./wanted.js";

/** One `TreePoints` for each tree, because sandboxes that share a workspace share its restore points. */
const pointsOfTree = new WeakMap<WorkspaceTree, TreePoints>();

export async function takeRestorePoint(
  opened: Opened,
  { signal, onCopied }: RestorePointOptions,
): Promise<RestorePoint | null> {
  const points = pointsOf(opened, "restorePoint");
  const count = points.count(onCopied);
  const taking = async () => (await points.take({ kind: "call", count, signal })).point;
  return await points.alone(taking, { signal, onCopied });
}

/** All points, also those that another process had taken. The first one first. */
export async function listRestorePoints(
  opened: Opened,
  { signal }: RestorePointOptions,
): Promise<RestorePoint[]> {
  const points = pointsOf(opened, "restorePoints");
  return await points.alone(async () => points.taken.map(({ point }) => point), { signal });
}

export async function restorePointOf(
  opened: Opened,
  number: number,
  { signal, onCopied }: RestorePointOptions,
): Promise<RestorePoint | null> {
  const points = pointsOf(opened, "restore");
  const count = points.count(onCopied);
  const restoring = () => restoreInPlace(points, { number, always: false, count, signal });
  return await points.alone(restoring, { signal, onCopied });
}

export async function undoCall(opened: Opened, options: RestorePointOptions): Promise<UndoneCall | null> {
  const points = pointsOf(opened, "undo");
  return await points.alone(() => undoLast(points, options), options);
}

export function pointsOf(opened: Opened, method: string): TreePoints {
  const tree = requireTree(opened, method);
  const known = pointsOfTree.get(tree);
  if (known !== undefined) return known;
  const { brigHome } = opened.settings.environment;
  const points = new TreePoints({ tree, changes: changesOf(tree), brigHome, warn: opened.warn });
  pointsOfTree.set(tree, points);
  if (opened.hasRun === true) points.goOnFromStored();
  return points;
}

/**
 * Undoes the last call that changed the tree and is not undone yet. Returns null if there is none. Call it
 * only within `alone`. Errors: those of a restore.
 */
export async function undoLast(
  points: TreePoints,
  { signal, onCopied }: RestorePointOptions,
): Promise<UndoneCall | null> {
  const count = points.count(onCopied);
  // A change that was not seen yet is undone first.
  const { isFull } = await points.take({ kind: "call", count, signal });
  if (isFull) throw tooLarge("the state that would be lost cannot be kept");
  const undone = lastCall(points.taken);
  if (undone === null) return null;
  const restores = stateOf(undone.point.number - 1, points.taken);
  const point = await restoreInPlace(points, { number: restores, always: true, count, signal });
  return point === null ? null : { undone: undone.point, restores, point };
}

function lastCall(taken: readonly TakenPoint[]): TakenPoint | null {
  let number = stateOf(taken.length, taken);
  while (number > 0 && taken[number - 1]?.kind !== "call") number = stateOf(number - 1, taken);
  return taken[number - 1] ?? null;
}

/**
 * The first point that had the state of this one: the point of an undo stands for the point that it restored.
 */
function stateOf(number: number, taken: readonly TakenPoint[]): number {
  let at = number;
  for (let point = taken[at - 1]; point?.restores != null; point = taken[at - 1]) at = point.restores;
  return at;
}

/** The longest interval at which a Linux kernel updates the clock that file times are taken from. */
const CLOCK_TICK_MS = 10;

interface RestoreRequest {
  /** The number of the point; 0 for the state at the start. */
  number: number;
  /** Whether to take a point even if nothing has to be changed. */
  always: boolean;
  /** Counts the files that are stored or restored. */
  count?: CopyCount | undefined;
  signal: AbortSignal | undefined;
}

/**
 * Gives a tree the state that it had at a point, and takes a new point of that. Call it only within `alone`.
 * Errors: `snapshot.unknown`, `workspace.conflict` with nothing changed, `file.*`, those of a scan.
 */
export async function restoreInPlace(
  points: TreePoints,
  { number, always, count, signal }: RestoreRequest,
): Promise<RestorePoint | null> {
  const scan = await settledScan(points, { count, signal });
  const { tree, brigHome } = points;
  if (points.taken.length === 0 && number === 0) return null;
  const snapshot = await openSnapshot(brigHome, tree.id, { point: number });
  const now = { tree, state: points.state, touched: scan.all, isFresh: false, signal };
  const wanted = await wantedPaths(snapshot, now);
  if (wanted.length === 0 && !always) return null;
  const changing = new Changing();
  for (const { path, now: state, content } of wanted) {
    const expects = await expectedAt(path, state?.type, { ...now, scan });
    changing.add(path, state, { expects, content, isExact: true });
  }
  const note = async (stage: CommitStage) =>
    await noteApply(brigHome, { workspace: tree.workspace, tree: tree.id, stage });
  // What is written now has to be read once more, for the point of it.
  count?.expectTwice(sizesOfFiles(wanted));
  const conflicts = await commitInto(tree, changing, { signal, note, count });
  if (conflicts.length > 0) throw conflict(number, conflicts);
  return (await points.take({ kind: "undo", restores: number, count, signal: undefined })).point;
}

/**
 * Takes a point of the changes so far, so that they are not lost. Then waits until later changes get a later
 * time, and scans again.
 */
async function settledScan(
  points: TreePoints,
  { count, signal }: Pick<RestoreRequest, "count" | "signal">,
): Promise<TouchedScan> {
  await points.take({ kind: "call", count, signal });
  await pause(CLOCK_TICK_MS, signal);
  const { scan, isFull } = await points.take({ kind: "call", signal });
  if (isFull) throw tooLarge("the state that would be lost cannot be kept");
  return scan;
}

/** The state that the commit expects at a path: the one that the last scan has found there. */
async function expectedAt(
  path: Buffer,
  becomes: PresentState["type"] | undefined,
  { scan, ...now }: TreeNow & { scan: TouchedScan },
): Promise<Expected> {
  const touched = scan.all.get(keyOf(path));
  const there = touched === undefined ? await statIn(MERGED_PATH, path, now) : touched.now;
  if (there === null) return "absent";
  const isExact = touched?.now != null && (there.type !== "directory" || becomes === "directory");
  // Any change after the scan has at least the time at which the scan began.
  return isExact ? touched.now : { type: there.type, notSinceNs: scan.startedNs - 1n };
}

function conflict(number: number, conflicts: readonly PathReason[]): BrigError {
  const [first] = conflicts;
  const others = conflicts.length > 1 ? ` (and ${conflicts.length - 1} more)` : "";
  return new BrigError(
    `restore point ${number} was not restored, and nothing was changed: ${JSON.stringify(first?.path)}: ${first?.reason}${others}`,
    { code: "workspace.conflict", hint: "wait until no program writes to the workspace, and try again" },
  );
}
