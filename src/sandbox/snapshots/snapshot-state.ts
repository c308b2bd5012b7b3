import { BrigError } from "../../errors.js";
import type { BaseState } from "../tree/tree-state.js";
import type { ManifestBase, ManifestEntry } from "./manifest.js";
import { type PointEntry, type PointHead, pathOfEntry } from "./point-lines.js";
import { readPoints } from "./point-log.js";

/** The host's state of a path that was not changed at the point, but before or later. */
export interface EarlierBase {
  path: Buffer;
  /** Null if the host had nothing there. */
  state: BaseState | null;
  /** The name of its content, or of the target of a symbolic link; null if it is not in the snapshot. */
  baseSha256: string | null;
  /** An apply of this path is a conflict unless the host has this there. */
  hostBase: ManifestBase;
  /** The owner of the first changed version; null if the path was deleted. */
  owner: { uid: number; gid: number } | null;
}

interface SnapshotState {
  entries(): AsyncIterable<ManifestEntry>;
  bases: readonly EarlierBase[];
  points: readonly PointHead[];
}

/**
 * Computes the state of a snapshot from its manifest and its points. Errors: `snapshot.invalid`,
 * `snapshot.unknown`.
 */
export async function readState(
  manifest: () => AsyncIterable<ManifestEntry>,
  { log, point }: { log: string; point: number | undefined },
): Promise<SnapshotState> {
  const state = new Map<string, ManifestEntry>();
  const bases = new Map<string, EarlierBase>();
  const points: PointHead[] = [];
  for await (const { head, entries } of readPoints(log)) {
    // The manifest is read into memory only if there are points, because a snapshot without any may be too
    // large.
    if (points.length === 0) for await (const entry of manifest()) addEntry(state, entry);
    points.push(head);
    if (point === undefined || head.point <= point)
      for (const entry of entries) {
        noteBase(bases, entry, { known: state, isApplied: head.kind === "applied" });
        addEntry(state, entry);
      }
    else for (const entry of entries) addLater(entry, { state, bases });
  }
  if (point !== undefined && !isPoint(point, points.length)) throw noPoint(point, points.length);
  if (points.length === 0) return { entries: manifest, bases: [], points };
  const sorted = [...state.values()].sort((one, other) => Buffer.compare(one.change.path, other.change.path));
  return {
    entries: async function* () {
      yield* sorted;
    },
    bases: point === undefined ? [] : [...bases.values()],
    points,
  };
}

function addEntry(state: Map<string, ManifestEntry>, entry: PointEntry): void {
  const key = pathOfEntry(entry).toString("latin1");
  if ("same" in entry) state.delete(key);
  else state.set(key, entry);
}

/** A path that has become the host's again was as its base, unless it was brought to the host. */
function noteBase(
  bases: Map<string, EarlierBase>,
  entry: PointEntry,
  { known, isApplied }: { known: ReadonlyMap<string, ManifestEntry>; isApplied: boolean },
): void {
  const key = pathOfEntry(entry).toString("latin1");
  const before = known.get(key);
  if ("same" in entry && !isApplied && before !== undefined) bases.set(key, earlierBase(before));
  else bases.delete(key);
}

function earlierBase({ change: { path, now, before }, base, baseSha256 }: ManifestEntry): EarlierBase {
  return {
    path,
    state: base.state === "unknown" ? before : base.state,
    baseSha256: baseSha256 ?? null,
    hostBase: base,
    owner: now === null ? null : { uid: now.uid, gid: now.gid },
  };
}

/** The first later change of a path says what the host had there at the point. */
function addLater(
  entry: PointEntry,
  { state, bases }: { state: Map<string, ManifestEntry>; bases: Map<string, EarlierBase> },
): void {
  const path = pathOfEntry(entry);
  const key = path.toString("latin1");
  const [known, earlier] = [state.get(key), bases.get(key)];
  if ("same" in entry) {
    // If the path was applied to the host later, the host's file may be replaced again.
    if (entry.base && known !== undefined) state.set(key, { ...known, base: entry.base });
    if (entry.base && earlier !== undefined) bases.set(key, { ...earlier, hostBase: entry.base });
  } else if (known === undefined && earlier === undefined) bases.set(key, earlierBase(entry));
}

function isPoint(point: number, count: number): boolean {
  return Number.isInteger(point) && point >= 0 && point <= count;
}

function noPoint(point: number, count: number): BrigError {
  return new BrigError(
    `there is no restore point ${point}: ${count === 0 ? "none was taken" : `the last one is ${count}`}`,
    { code: "snapshot.unknown", hint: "0 is the state at the start" },
  );
}
