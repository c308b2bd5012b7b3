import { BrigError } from "../../errors.js";
import { formatBytes } from "../../lib/bytes.js";
import { readCurrentProcess } from "../../lib/file-lock.js";
import { Gate, someAtOnce } from "../../lib/time/gate.js";
import { FILES_AT_ONCE } from "../changes/commit.js";
import { type CopiedChanges, CopyCount, type OnCopied } from "../changes/copied-changes.js";
import type { LiveChanges } from "../changes/live-changes.js";
import { sizesOfFiles } from "../changes/take-snapshot.js";
import {
  isBelowOneOf,
  isOfRepository,
  keyOf,
  type SeenChange,
  type TouchedPath,
} from "../changes/workspace-change.js";
import type { WorkspaceTree } from "../overlay/workspace-tree.js";
import type { ManifestEntry } from "../snapshots/manifest.js";
import { type PointEntry, type PointHead, type PointKind, pathOfEntry } from "../snapshots/point-log.js";
import {
  createSnapshot,
  openPointLog,
  readEarlierPoints,
  type SnapshotLog,
  storing,
} from "../snapshots/snapshot-store.js";
import { occupiedBytes } from "../tree/tree-changes.js";
import type { Warn } from "../warnings.js";
import type { RestorePoint, RestorePointChange, RestorePointOptions } from "./restore-point.js";
import type { StartState } from "./start.js";
import { TouchedPaths, type TouchedScan } from "./touched-paths.js";
import { isSameEntry, storeEntry } from "./wanted.js";

interface TreePointsRequest {
  tree: WorkspaceTree;
  changes: LiveChanges;
  brigHome: string;
  /** Called once if the changes are too large for restore points. */
  warn: Warn;
}

/** A restore point that this process has taken. */
export interface TakenPoint {
  kind: PointKind;
  /** For an undo, the number of the point whose state was restored; otherwise null. */
  restores: number | null;
  point: RestorePoint;
}

export interface TakeRequest {
  kind: PointKind;
  /**
   * Given for an undo: the number of the point whose state was restored. The point of an undo is taken even
   * if nothing has changed.
   */
  restores?: number;
  /** Counts the files that are stored. */
  count?: CopyCount | undefined;
  signal: AbortSignal | undefined;
}

/** The outcome for a point that was to be taken. */
export interface TakeResult {
  /** Null if nothing has changed, or for lack of room. */
  point: RestorePoint | null;
  scan: TouchedScan;
  /** The changes are too large to be stored. The next point stores them, if they are smaller by then. */
  isFull: boolean;
}

const NOTHING_COPIED: CopiedChanges = { files: 0, bytes: 0, totalFiles: 0, totalBytes: 0 };

/** The most bytes that the contents of a tree's points may have together. */
const MAX_BYTES = 10 * 1024 ** 3;

/** A file that is written through a memory mapping gets no new time before the kernel writes it back, after 30 s or so. */
const WRITTEN_BACK_NS = 60n * 1_000_000_000n;

/** The restore points of a copy-on-write tree, for all sandboxes that work on it. */
export class TreePoints {
  readonly tree: WorkspaceTree;
  readonly changes: LiveChanges;
  readonly brigHome: string;
  readonly #warn: Warn;
  readonly #touched: TouchedPaths;
  readonly #gate = new Gate();
  readonly #taken: TakenPoint[] = [];
  #log: SnapshotLog | null = null;
  /** The paths that differed from the host's files at the last point. Keys: the path's bytes as latin1. */
  #state = new Map<string, ManifestEntry>();
  #start: StartState | null = null;
  #storedBytes = 0;
  #hasScanned = false;
  #mayHaveEarlier = false;
  #hasWarned = false;
  /** Told what is counted while they wait. */
  readonly #waiting = new Set<OnCopied>();

  constructor({ tree, changes, brigHome, warn }: TreePointsRequest) {
    this.tree = tree;
    this.changes = changes;
    this.brigHome = brigHome;
    this.#warn = warn;
    this.#touched = new TouchedPaths(changes);
  }

  /** All points that were taken, the first one first. */
  get taken(): readonly TakenPoint[] {
    return this.#taken;
  }

  /** The paths that differed from the host's files at the last point. */
  get state(): ReadonlyMap<string, ManifestEntry> {
    return this.#state;
  }

  /** The tree has begun with more than the host's files. Before any point is taken. */
  startFrom(start: StartState): void {
    this.#start = start;
  }

  /** Another process has worked on the tree, and may have taken points. */
  goOnFromStored(): void {
    this.#mayHaveEarlier = true;
  }

  /** Counts for somebody what is stored or restored, and for those who wait for that. */
  count(onCopied: OnCopied | undefined): CopyCount {
    return new CopyCount((copied) => {
      onCopied?.(copied);
      for (const waiting of this.#waiting) waiting({ ...copied, phase: "waiting" });
    });
  }

  /** One after the other: a point is made of the changes since the one before. Error: `snapshot.failed`. */
  async alone<T>(run: () => Promise<T>, { signal, onCopied }: RestorePointOptions = {}): Promise<T> {
    const waiting = this.#gate.isIdle ? undefined : onCopied;
    const first = async () => {
      if (waiting !== undefined) this.#waiting.delete(waiting);
      waiting?.(NOTHING_COPIED);
      await this.#readEarlier();
      return await run();
    };
    waiting?.({ ...NOTHING_COPIED, phase: "waiting" });
    if (waiting !== undefined) this.#waiting.add(waiting);
    try {
      return await this.#gate.pass(() => storing(this.brigHome, first), { width: 1, signal });
    } finally {
      if (waiting !== undefined) this.#waiting.delete(waiting);
    }
  }

  async #readEarlier(): Promise<void> {
    if (!this.#mayHaveEarlier) return;
    const earlier = await readEarlierPoints(this.brigHome, this.tree.id);
    this.#mayHaveEarlier = false;
    if (earlier === null) return;
    for (const entry of earlier.start) this.#state.set(keyOf(entry.change.path), entry);
    for (const { head, entries } of earlier.points) this.#remember(head, entries);
    for (const { change, base } of this.#state.values()) {
      this.changes.setBase(change.path, base);
      this.#storedBytes += occupiedBytes(change.now);
    }
    this.#log = earlier.log;
  }

  /**
   * Takes a point of what has changed since the last one. Only within `alone`. Errors: those of a scan and of
   * the file system; the next point then has the same changes, too.
   */
  async take({ kind, restores, count, signal }: TakeRequest): Promise<TakeResult> {
    const scan = await this.#scan(kind, signal);
    const recent = scan.recent.filter(isDifferent);
    // Differences that a tree has begun with may be gone without a trace before the first scan.
    const isWanted = restores !== undefined || (this.#start !== null && !this.#hasScanned);
    if (this.#goneIn(scan).length === 0 && recent.length === 0 && !isWanted) return this.#accept(scan, null);
    const maxBytes = kind === "end" ? MAX_BYTES : MAX_BYTES - this.#storedBytes;
    if (sizeOf(recent) > maxBytes) return this.#refuse(scan);
    await using log = await this.#openLog();
    const start = await this.#readStart(scan, { log, signal });
    const entries = await this.#storeAll(recent, { log, count, signal });
    const all: PointEntry[] = [...this.#sameEntries(this.#goneIn(scan), kind), ...entries];
    all.sort((one, other) => Buffer.compare(pathOfEntry(one), pathOfEntry(other)));
    if (all.length === 0 && restores === undefined) return this.#accept(scan, null);
    const head = await log.append({ at: new Date().toISOString(), kind, restores }, all, start);
    return this.#accept(scan, this.#remember(head, all));
  }

  async #scan(kind: PointKind, signal: AbortSignal | undefined): Promise<TouchedScan> {
    if (kind === "end") return await this.#touched.scanAll({ signal, doubtNs: WRITTEN_BACK_NS });
    return kind === "applied"
      ? await this.#touched.scanAll({ signal })
      : await this.#touched.scan({ signal });
  }

  /** Takes the point at the end of a session, and returns how many paths differ from the host's files. */
  async takeLast(onCopied?: OnCopied): Promise<number> {
    const { isFull } = await this.take({ kind: "end", count: this.count(onCopied), signal: undefined });
    if (isFull) throw tooLarge("what was changed since the last restore point was not kept");
    return this.#state.size;
  }

  #accept(scan: TouchedScan, point: RestorePoint | null): TakeResult {
    this.#touched.accept(scan);
    this.#hasScanned = true;
    return { point, scan, isFull: false };
  }

  #refuse(scan: TouchedScan): TakeResult {
    if (!this.#hasWarned) this.#warn(tooLarge("there are no restore points until they are smaller"));
    this.#hasWarned = true;
    return { point: null, scan, isFull: true };
  }

  #remember({ kind, restores, point: number }: PointHead, entries: readonly PointEntry[]): RestorePoint {
    const point = { snapshot: this.tree.id, number, ...summarise(entries, this.#state) };
    for (const entry of entries) {
      const key = keyOf(pathOfEntry(entry));
      if ("same" in entry) this.#state.delete(key);
      else this.#state.set(key, entry);
    }
    this.#taken.push({ kind, restores: restores ?? null, point });
    return point;
  }

  /** The paths that differed at the last point, and do not any more. */
  #goneIn({ all, recent, vanished }: TouchedScan): Buffer[] {
    const same = recent.filter(({ change }) => change === "same").map(({ path }) => keyOf(path));
    const keys = new Set([...vanished, ...same]);
    // The paths that differed when the tree began were never scanned before the first point.
    if (this.#taken.length === 0 || !this.#hasScanned)
      for (const key of this.#state.keys()) if (!all.has(key)) keys.add(key);
    return [...keys].flatMap((key) => this.#state.get(key)?.change.path ?? []);
  }

  #sameEntries(paths: readonly Buffer[], kind: PointKind): PointEntry[] {
    const baseOf = (path: Buffer) => (kind === "applied" ? this.changes.baseOf(path) : undefined);
    return paths.map((path) => ({ path, same: true, base: baseOf(path) }));
  }

  /** The state before the first point; null afterwards. */
  async #readStart(
    scan: TouchedScan,
    { log, signal }: { log: OpenLog; signal: AbortSignal | undefined },
  ): Promise<ManifestEntry[] | null> {
    if (this.#log !== null) return null;
    const { contents } = log;
    const entries = (await this.#start?.({ scan, changes: this.changes, contents, signal })) ?? [];
    this.#state = new Map(entries.map((entry) => [keyOf(entry.change.path), entry]));
    return entries;
  }

  async #storeAll(
    recent: readonly SeenChange[],
    { log, count = this.count(undefined), signal }: { log: OpenLog } & Pick<TakeRequest, "count" | "signal">,
  ): Promise<ManifestEntry[]> {
    count.expect(sizesOfFiles(recent));
    const onStored = (sizeBytes: number) => {
      this.#storedBytes += sizeBytes;
    };
    const store = { changes: this.changes, contents: log.contents, onStored, count, signal };
    const storeOne = async (change: SeenChange) => {
      const previous = this.#state.get(keyOf(change.path));
      const entry = await storeEntry(change, previous, store);
      return entry === null || isSameEntry(entry, previous) ? [] : [entry];
    };
    return (await someAtOnce(recent, storeOne, { width: FILES_AT_ONCE, signal })).flat();
  }

  /** The log of this tree. Before the first point, it has no name yet, and goes if none is appended. */
  async #openLog(): Promise<OpenLog> {
    const log = this.#log;
    if (log !== null)
      return {
        contents: log.contents,
        append: (head, entries) => log.points.append(head, entries),
        [Symbol.asyncDispose]: async () => undefined,
      };
    const { id, workspace } = this.tree;
    const { owner } = await readCurrentProcess();
    const createdAt = new Date().toISOString();
    const writer = await createSnapshot(this.brigHome, { version: 1, id, workspace, createdAt, owner });
    return {
      contents: writer.contents,
      append: async (head, entries, start) => {
        for (const entry of start ?? []) await writer.add(entry);
        await writer.addPoint(head, entries);
        await writer.finish();
        this.#log = await openPointLog(this.brigHome, id);
        return { ...head, point: 1, entries: entries.length };
      },
      [Symbol.asyncDispose]: () => writer[Symbol.asyncDispose](),
    };
  }
}

interface OpenLog extends AsyncDisposable {
  contents: SnapshotLog["contents"];
  append(
    head: Omit<PointHead, "point" | "entries">,
    entries: readonly PointEntry[],
    start: readonly ManifestEntry[] | null,
  ): Promise<PointHead>;
}

function isDifferent(path: TouchedPath): path is SeenChange {
  return path.change !== "same";
}

function sizeOf(changes: readonly SeenChange[]): number {
  return changes.reduce((sum, { now }) => sum + occupiedBytes(now), 0);
}

export function tooLarge(consequence: string): BrigError {
  return new BrigError(
    `the changes of the workspace have more than ${formatBytes(MAX_BYTES)}, so ${consequence}`,
    { code: "file.too-large", hint: "remove large files that need not be kept" },
  );
}

const LISTED_MAX = 100;

/**
 * Summarises the changes of a point since the one before. The entries must be in the order of their paths. Changes in the
 * repository are named as ".git" alone, since a commit changes many files in it.
 */
export function summarise(
  entries: readonly PointEntry[],
  before: ReadonlyMap<string, ManifestEntry>,
): Pick<RestorePoint, "count" | "changes"> {
  const changes: RestorePointChange[] = [];
  let count = 0;
  const deleted = new Set<string>();
  let hasRepository = false;
  for (const entry of entries) {
    const key = keyOf(pathOfEntry(entry));
    const changed = changeOf(entry, before.get(key));
    if (changed === null) continue;
    const isRepository = isOfRepository(pathOfEntry(entry));
    if (isRepository && hasRepository) continue;
    hasRepository ||= isRepository;
    const path = isRepository ? ".git" : Buffer.from(key, "latin1").toString("utf8");
    const change = isRepository && path !== key ? "modified" : changed;
    if (change === "deleted") {
      // Paths below a deleted directory are not listed.
      if (isBelowOneOf(key, deleted)) continue;
      deleted.add(key);
    }
    count++;
    if (changes.length < LISTED_MAX) changes.push({ path, change });
  }
  return { count, changes };
}

/** Null if the path did not exist before and does not exist now. */
function changeOf(entry: PointEntry, before: ManifestEntry | undefined): RestorePointChange["change"] | null {
  const isThere = "same" in entry ? before?.change.before != null : entry.change.now !== null;
  const wasThere =
    before === undefined ? !("same" in entry) && entry.change.before !== null : before.change.now !== null;
  if (wasThere) return isThere ? "modified" : "deleted";
  return isThere ? "added" : null;
}
