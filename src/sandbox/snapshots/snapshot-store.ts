import { randomUUID } from "node:crypto";
import { access, open, rename, rm, stat } from "node:fs/promises";
import { hostname } from "node:os";
import { dirname, join } from "node:path";
import { BrigError, isBrigError } from "../../errors.js";
import { errnoOf } from "../../lib/errno.js";
import { acquireLock, type FileLock, type LockOptions } from "../../lib/file-lock.js";
import { makeDirectory } from "../../lib/files/make-directory.js";
import { namesIn } from "../../lib/files/names-in.js";
import { type HostProcesses, readHostProcesses } from "../../lib/owner.js";
import type { HostBase } from "../changes/workspace-change.js";
import type { BaseState } from "../tree/tree-changes.js";
import { ContentStore, notStored } from "./content-store.js";
import {
  entryLine,
  headLine,
  type ManifestEntry,
  type ManifestHead,
  readEntry,
  readHead,
} from "./manifest.js";
import {
  type PointEntry,
  type PointHead,
  PointLog,
  pathOfEntry,
  readLine,
  readPoints,
  type StoredPoint,
  storedLines,
} from "./point-log.js";

/** Lines are collected and written together, because there may be very many of them. */
const BATCH_CHARACTERS = 64 * 1024;
const MANIFEST = "manifest.jsonl";
const POINTS = "points.jsonl";
const CONTENTS = "objects";

/** A complete snapshot on the host, in the state that it has at one of its points. */
export interface StoredSnapshot {
  readonly head: ManifestHead;
  readonly contents: ContentStore;
  /** All its points; none if only one state was stored. */
  readonly points: readonly PointHead[];
  /** The paths that differed from the host's. Error: `snapshot.invalid`. */
  entries(): AsyncIterable<ManifestEntry>;
  /** The host's states of paths that do not differ at this point, but differ at another one. Only if a point was named. */
  readonly bases: readonly EarlierBase[];
}

/** A complete snapshot to which points are added. */
export interface SnapshotLog {
  readonly contents: ContentStore;
  readonly points: PointLog;
}

/** A snapshot and when it last changed. */
export type DescribedSnapshot = ManifestHead & { changedAt: string };

/** A snapshot that is being made. */
export interface SnapshotWriter {
  readonly contents: ContentStore;
  add(entry: ManifestEntry): Promise<void>;
  /** Adds a first point, which appears together with the snapshot. Add all entries before. */
  addPoint(head: Omit<PointHead, "point" | "entries">, entries: readonly PointEntry[]): Promise<void>;
  /**
   * Completes the snapshot and gives it its name, replacing an earlier one of that name. It can be opened
   * from then on.
   */
  finish(): Promise<StoredSnapshot>;
  /** Removes what was written. After `finish` it does nothing. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** Begins a snapshot. Throws the file system's own errors, as do the writer's methods: see `storing`. */
export async function createSnapshot(brigHome: string, head: ManifestHead): Promise<SnapshotWriter> {
  const path = pathOf(brigHome, head.id);
  const unfinished = join(directoryIn(brigHome), unfinishedName(await thisHost()));
  await makeDirectory(unfinished, { mode: 0o700 });
  const manifest = await open(join(unfinished, MANIFEST), "wx", 0o600);
  let pending = `${headLine(head)}\n`;
  const flush = async () => {
    const text = pending;
    pending = "";
    await manifest.appendFile(text);
  };
  const contents = new ContentStore(join(unfinished, CONTENTS));
  const points = await PointLog.open(join(unfinished, POINTS));
  return {
    contents,
    addPoint: async (pointHead, entries) => void (await points.append(pointHead, entries)),
    add: async (entry) => {
      pending += `${entryLine(entry)}\n`;
      if (pending.length >= BATCH_CHARACTERS) await flush();
    },
    finish: async () => {
      await flush();
      await manifest.sync();
      await manifest.close();
      await replaceDirectory(unfinished, path);
      return await openSnapshot(brigHome, head.id);
    },
    [Symbol.asyncDispose]: async () => {
      await manifest.close().catch(() => undefined);
      await rm(unfinished, { recursive: true, force: true });
    },
  };
}

/**
 * Runs an action that stores something. Errors: `snapshot.failed` for errors of the host's file system; any
 * other error of the action as it is.
 */
export async function storing<Result>(brigHome: string, store: () => Promise<Result>): Promise<Result> {
  try {
    return await store();
  } catch (error) {
    throw notStored(directoryIn(brigHome), error);
  }
}

/**
 * Opens a snapshot with the state that it has at a point; 0 is the state at the start. Default: the last
 * point; paths that are the same as the host's are then as the host has them now. Another process may be
 * adding points meanwhile. Errors: `snapshot.unknown`, also for a point that does not exist;
 * `snapshot.invalid`.
 */
export async function openSnapshot(
  brigHome: string,
  id: string,
  { point }: { point?: number | undefined } = {},
): Promise<StoredSnapshot> {
  return await storedIn(pathOf(brigHome, id), { point });
}

/**
 * The description of a snapshot, with the time at which its last point was taken, or it was made if it has none. Errors:
 * `snapshot.unknown`, `snapshot.invalid`.
 */
export async function describeSnapshot(brigHome: string, id: string): Promise<DescribedSnapshot> {
  const path = pathOf(brigHome, id);
  const head = await readHeadIn(path);
  const points = await stat(join(path, POINTS)).catch(() => null);
  return { ...head, changedAt: points?.mtime.toISOString() ?? head.createdAt };
}

/** Opens the log of a complete snapshot's points, to add some. Errors: as `openSnapshot`. */
export async function openPointLog(brigHome: string, id: string): Promise<SnapshotLog> {
  const path = pathOf(brigHome, id);
  await readHeadIn(path);
  return {
    contents: new ContentStore(join(path, CONTENTS)),
    points: await PointLog.open(join(path, POINTS)),
  };
}

/**
 * The state that a snapshot begins with, its points, and the log to add more to. Null if there is none of that id. Error:
 * `snapshot.invalid`.
 */
export async function readEarlierPoints(
  brigHome: string,
  id: string,
): Promise<{ start: ManifestEntry[]; points: StoredPoint[]; log: SnapshotLog } | null> {
  try {
    const log = await openPointLog(brigHome, id);
    const path = pathOf(brigHome, id);
    const [start, points]: [ManifestEntry[], StoredPoint[]] = [[], []];
    for await (const entry of entriesIn(path)) start.push(entry);
    for await (const point of readPoints(join(path, POINTS))) points.push(point);
    return { start, points, log };
  } catch (error) {
    if (isBrigError(error, "snapshot.unknown")) return null;
    throw error;
  }
}

/** Keeps other processes from adding points meanwhile. Null if another one does not let go of them. */
export async function lockPoints(
  brigHome: string,
  id: string,
  options: LockOptions,
): Promise<FileLock | null> {
  const outcome = await acquireLock(join(pathOf(brigHome, id), POINTS), options);
  return outcome.kind === "held" ? outcome.lock : null;
}

async function storedIn(
  path: string,
  { point }: { point?: number | undefined } = {},
): Promise<StoredSnapshot> {
  const head = await readHeadIn(path);
  const manifest = () => entriesIn(path);
  const { entries, bases, points } = await readState(manifest, { log: join(path, POINTS), point });
  return {
    head,
    contents: new ContentStore(join(path, CONTENTS)),
    points,
    entries,
    bases,
  };
}

async function readHeadIn(path: string): Promise<ManifestHead> {
  const lines = storedLines(join(path, MANIFEST));
  const first = await lines.next();
  await lines.return(undefined);
  if (first.done === true && !(await exists(join(path, MANIFEST))))
    throw new BrigError(`there is no snapshot ${path}`, { code: "snapshot.unknown" });
  return readLine(readHead, first.value, path);
}

async function* entriesIn(path: string): AsyncGenerator<ManifestEntry> {
  let isFirst = true;
  for await (const line of storedLines(join(path, MANIFEST))) {
    if (!isFirst) yield readLine(readEntry, line, path);
    isFirst = false;
  }
}

/** The ids of all complete snapshots, sorted. */
export async function listSnapshots(brigHome: string): Promise<string[]> {
  const names = await namesIn(directoryIn(brigHome));
  return names.filter((name) => isId(name)).sort();
}

/** Removes a snapshot, if there is one. */
export async function removeSnapshot(brigHome: string, id: string): Promise<void> {
  const doomed = join(directoryIn(brigHome), unfinishedName(await thisHost()));
  try {
    // It is renamed first, so that nobody can open it when only a part of it is left.
    await rename(pathOf(brigHome, id), doomed);
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return;
    throw error;
  }
  await rm(doomed, { recursive: true, force: true });
}

/** Removes the incomplete snapshots of killed processes of this machine, and returns their number. */
export async function removeUnfinishedSnapshots(brigHome: string, processes: HostProcesses): Promise<number> {
  let removed = 0;
  for (const name of await namesIn(directoryIn(brigHome))) {
    const [, host, pid] = /^\.(.+)\.([0-9]{1,10})\.[0-9a-f-]{36}\.new$/.exec(name) ?? [];
    if (host !== processes.host || processes.isAlive(Number(pid))) continue;
    await rm(join(directoryIn(brigHome), name), { recursive: true, force: true });
    removed++;
  }
  return removed;
}

export function directoryIn(brigHome: string): string {
  return join(brigHome, "snapshots");
}

function pathOf(brigHome: string, id: string): string {
  if (isId(id)) return join(directoryIn(brigHome), id);
  throw new BrigError(`${JSON.stringify(id)} is not the id of a snapshot`, { code: "snapshot.unknown" });
}

/** No dot and no slash, so that an id cannot lead to another directory. */
function isId(name: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/.test(name);
}

async function thisHost(): Promise<string> {
  return (await readHostProcesses(hostname())).host;
}

function unfinishedName(host: string): string {
  return `.${host}.${process.pid}.${randomUUID()}.new`;
}

async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}

/** A directory cannot be renamed onto one that is not empty, so the old one is moved away first. */
async function replaceDirectory(from: string, to: string): Promise<void> {
  for (;;) {
    try {
      return await rename(from, to);
    } catch (error) {
      if (errnoOf(error) !== "ENOTEMPTY" && errnoOf(error) !== "EEXIST") throw error;
    }
    const old = join(dirname(from), unfinishedName(await thisHost()));
    await rename(to, old).catch((error: unknown) => {
      if (errnoOf(error) !== "ENOENT") throw error;
    });
    await rm(old, { recursive: true, force: true });
  }
}

/** The host's state of a path that was not changed at the point, but before or later. */
export interface EarlierBase {
  path: Buffer;
  /** Null if the host had nothing there. */
  state: BaseState | null;
  /** The name of its content, or of the target of a symbolic link; null if it is not in the snapshot. */
  baseSha256: string | null;
  /** An apply of this path is a conflict unless the host has this there. */
  hostBase: HostBase;
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
async function readState(
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
