import { BrigError } from "../../errors.js";
import { pause } from "../../lib/time/pause.js";
import { commitInto } from "../changes/commit/commit-into.js";
import { recordOf } from "../changes/commit/records.js";
import type { Content } from "../changes/commit/stage-contents.js";
import { keyOf } from "../changes/path-key.js";
import type { PathReason } from "../changes/workspace-change.js";
import { MERGED_PATH } from "../overlay/workspace-tree.js";
import { openSnapshot } from "../snapshots/snapshot-store.js";
import type { Expected, TreeRecord } from "../tree/commit-records.js";
import type { PresentState } from "../tree/tree-state.js";
import type { RestorePoint } from "./restore-point.js";
import type { TouchedScan } from "./touched-paths.js";
import { type TreePoints, tooLarge } from "./tree-points.js";
import type { TreeNow } from "./wanted.js";
import { statIn } from "./wanted-base.js";
import { wantedPaths } from "./wanted-paths.js";

/** The longest interval at which a Linux kernel updates the clock that file times are taken from. */
const CLOCK_TICK_MS = 10;

interface RestoreRequest {
  /** The number of the point; 0 for the state at the start. */
  number: number;
  /** Whether to take a point even if nothing has to be changed. */
  always: boolean;
  signal: AbortSignal | undefined;
}

/**
 * Gives a tree the state that it had at a point, and takes a new point of that. Call it only within `alone`.
 * Errors: `snapshot.unknown`, `workspace.conflict` with nothing changed, `file.*`, those of a scan.
 */
export async function restoreInPlace(
  points: TreePoints,
  { number, always, signal }: RestoreRequest,
): Promise<RestorePoint | null> {
  const scan = await settledScan(points, signal);
  const { tree, brigHome } = points;
  if (points.taken.length === 0 && number === 0) return null;
  const snapshot = await openSnapshot(brigHome, tree.id, { point: number });
  const now = { tree, state: points.state, touched: scan.all, isFresh: false, signal };
  const wanted = await wantedPaths(snapshot, now);
  if (wanted.length === 0 && !always) return null;
  const contents: (() => Promise<Content>)[] = [];
  const records: TreeRecord[] = [];
  for (const { path, now: state, content } of wanted) {
    const expects = await expectedAt(path, state?.type, { ...now, scan });
    const record = recordOf(path, state, { expects, content: contents.length, isExact: true });
    if (record !== null) records.push(record);
    if (record?.action === "put" && content !== null) contents.push(content);
  }
  const conflicts = await commitInto(tree, { records, contents, signal });
  if (conflicts.length > 0) throw conflict(number, conflicts);
  return (await points.take({ kind: "undo", restores: number, signal: undefined })).point;
}

/**
 * Takes a point of the changes so far, so that they are not lost. Then waits until later changes get a later
 * time, and scans again.
 */
async function settledScan(points: TreePoints, signal: AbortSignal | undefined): Promise<TouchedScan> {
  await points.take({ kind: "call", signal });
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
