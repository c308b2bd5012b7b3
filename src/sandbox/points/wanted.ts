import { BrigError, isBrigError } from "../../errors.js";
import type { CopyCount } from "../changes/copied-changes.js";
import { isSameBase } from "../changes/host-conflict.js";
import type { LiveChanges } from "../changes/live-changes.js";
import {
  isBelowOneOf,
  keyOf,
  relativeTo,
  type SeenChange,
  type TouchedPath,
} from "../changes/workspace-change.js";
import { fileContent } from "../files/file-reads.js";
import { type Content, type ContentPiece, isGone } from "../files/file-request.js";
import { statFile } from "../files/files.js";
import { BASE_PATH, below, MERGED_PATH, type WorkspaceTree } from "../overlay/workspace-tree.js";
import type { FileStat } from "../sandbox-types.js";
import type { ContentStore } from "../snapshots/content-store.js";
import type { ManifestEntry } from "../snapshots/manifest.js";
import type { EarlierBase, StoredSnapshot } from "../snapshots/snapshot-store.js";
import { type BaseState, occupiedBytes, type PresentState, scanChanges } from "../tree/tree-changes.js";
import { isStage, makeStage, newStage, recoverTree } from "../tree/tree-commit.js";

/** The state that a path of a tree is to get. */
export interface Wanted {
  path: Buffer;
  now: PresentState | null;
  /** Reads the content of a regular file; null for anything else. */
  content: (() => Promise<Content>) | null;
}

/** The present state of a tree that is to get an earlier state. */
export interface TreeNow {
  tree: WorkspaceTree;
  /** The paths that differ from the host's files. */
  state: ReadonlyMap<string, ManifestEntry>;
  /** The paths that commands have written to, whether they differ or not. */
  touched: ReadonlyMap<string, TouchedPath>;
  /** Whether the tree is new: no command has run in it, and it was not scanned yet. */
  isFresh: boolean;
  signal: AbortSignal | undefined;
}

type BaseRequest = TreeNow & { snapshot: StoredSnapshot };

/**
 * The entries to write so that a path gets the state that the host had before the sandbox first changed it. Empty
 * if it has that state. For a directory that was deleted, this includes everything that the host has in it.
 * Error: `workspace.conflict`.
 */
async function wantedBase(earlier: EarlierBase, now: BaseRequest): Promise<Wanted[]> {
  const { path, state: base, baseSha256 } = earlier;
  if (base === null) return wantedNothing(path, now);
  const host = await statIn(BASE_PATH, path, now);
  if (base.type === "directory") return await wantedDirectory(earlier, { base, host, now });
  const isHosts = host !== null && isStill(base, host);
  if (isHosts && isHostsOwn(keyOf(path), now)) return [];
  const state = await presentState(earlier, base, now);
  if (base.type === "file" && baseSha256 !== null)
    return [{ path, now: state, content: async () => now.snapshot.contents.read(baseSha256) }];
  if (base.type === "file" && isHosts)
    return [{ path, now: state, content: async () => await hostContent(state, path, now) }];
  if (base.type === "symlink" && state.linkTarget !== null) return [{ path, now: state, content: null }];
  // FIFOs, sockets and devices cannot be restored.
  if (base.type !== "file" && base.type !== "symlink") return [];
  throw notKept(path);
}

/** Whether the tree has at the path what the host has: neither the path nor a directory above it was replaced. */
function isHostsOwn(key: string, { state }: TreeNow): boolean {
  if (state.has(key)) return false;
  for (let end = key.lastIndexOf("/"); end > 0; end = key.lastIndexOf("/", end - 1)) {
    const above = state.get(key.slice(0, end));
    if (above !== undefined && above.change.now?.type !== "directory") return false;
  }
  return true;
}

/** The entries for a path that neither the host nor the sandbox had. */
function wantedNothing(path: Buffer, { state, touched, isFresh }: BaseRequest): Wanted[] {
  const key = keyOf(path);
  const isThere = state.get(key)?.change.now != null || touched.get(key)?.now != null;
  return isThere || isFresh ? [{ path, now: null, content: null }] : [];
}

async function wantedDirectory(
  { path, owner }: EarlierBase,
  { base, host, now }: { base: BaseState; host: FileStat | null; now: BaseRequest },
): Promise<Wanted[]> {
  const there = await statIn(MERGED_PATH, path, now);
  if (there?.type === "directory" && there.mode === base.mode) return [];
  if (there?.type !== "directory" && host?.type !== "directory") throw notKept(path);
  const { uid, gid } = owner ?? there ?? host ?? { uid: 0, gid: 0 };
  const state: PresentState = { ...base, uid, gid, links: 1, rdev: 0n, linkTarget: null };
  const directory: Wanted = { path, now: state, content: null };
  return there?.type === "directory" ? [directory] : [directory, ...(await hostDirectory(path, now))];
}

async function presentState(
  { path, owner, baseSha256 }: EarlierBase,
  base: BaseState,
  { snapshot, ...now }: BaseRequest,
): Promise<PresentState> {
  const { uid, gid } =
    owner ??
    (await statIn(BASE_PATH, path, now)) ??
    (await statIn(MERGED_PATH, Buffer.alloc(0), now)) ??
    root;
  const isLink = base.type === "symlink" && baseSha256 !== null;
  const linkTarget = isLink ? await whole(snapshot.contents.read(baseSha256)) : null;
  return { ...base, uid, gid, links: 1, rdev: 0n, linkTarget };
}

const root = { uid: 0, gid: 0 };

/** The target of a link, which is short and has no holes. */
async function whole(pieces: AsyncIterable<ContentPiece>): Promise<Buffer> {
  const all: Buffer[] = [];
  for await (const { data } of pieces) all.push(data);
  return Buffer.concat(all);
}

/** Looks at a path below one of the keeper's directories; null if nothing is there. */
export async function statIn(
  directory: string,
  path: Buffer,
  { tree, signal }: Pick<TreeNow, "tree" | "signal">,
): Promise<FileStat | null> {
  const keeper = await tree.keeper();
  try {
    const options = { followSymlinks: false, refuseSymlinks: true, signal };
    return await statFile(keeper, below(directory, path), options);
  } catch (error) {
    if (nothingThere.some((code) => isBrigError(error, code))) return null;
    throw error;
  }
}

const nothingThere = ["file.not-found", "file.not-directory", "file.symlink"] as const;

/** Whether the host has the same file as then, unchanged. */
function isStill(base: BaseState, host: FileStat): boolean {
  return (
    base.type === host.type &&
    base.mode === host.mode &&
    base.sizeBytes === host.sizeBytes &&
    base.ino === host.ino &&
    base.dev === host.dev &&
    Number(base.modifiedNs) / 1e6 === host.modifiedMs
  );
}

function notKept(path: Buffer): BrigError {
  const name = JSON.stringify(path.toString());
  return new BrigError(
    `that state cannot be made again: ${name} has been changed on the host since, and its content was not kept`,
    {
      code: "workspace.conflict",
      hint: "files of more than 16 MiB and deleted directories are not kept; put it back on the host, and try again",
    },
  );
}

/**
 * The paths of a tree that must change to give it the state of a snapshot. Errors: `snapshot.invalid`;
 * `workspace.conflict` if the state had the host's own version of a path, the host has changed that since,
 * and its content was not kept.
 */
export async function wantedPaths(snapshot: StoredSnapshot, now: TreeNow): Promise<Wanted[]> {
  const wanted: Wanted[] = [];
  const known = new Set<string>();
  /** The paths that are no directories, so nothing can be below them. */
  const leaves = new Set<string>();
  for await (const entry of snapshot.entries()) {
    const key = keyOf(entry.change.path);
    known.add(key);
    if (entry.change.now?.type !== "directory") leaves.add(key);
    if (!isStage(entry.change.path) && !isSameEntry(entry, now.state.get(key)))
      wanted.push(wantedEntry(entry, snapshot));
  }
  for (const { path } of snapshot.bases) known.add(keyOf(path));
  for (const base of snapshot.bases)
    if (!isStage(base.path) && !isBelowOneOf(keyOf(base.path), leaves))
      for (const one of await wantedBase(base, { ...now, snapshot }))
        if (one.path.equals(base.path) || !isKnown(one.path, { known, leaves })) {
          wanted.push(one);
          // A deleted directory may be in another one that was deleted at another point.
          known.add(keyOf(one.path));
        }
  return withoutHidden(wanted);
}

/** Whether the entries of the snapshot determine what is at the path. */
function isKnown(
  path: Buffer,
  { known, leaves }: { known: ReadonlySet<string>; leaves: ReadonlySet<string> },
): boolean {
  return known.has(keyOf(path)) || isBelowOneOf(keyOf(path), leaves);
}

function wantedEntry({ change: { path, now }, sha256 }: ManifestEntry, { contents }: StoredSnapshot): Wanted {
  if (now?.type === "file" && sha256 === null) throw notKept(path);
  return { path, now, content: sha256 === null ? null : async () => contents.read(sha256) };
}

/** Leaves out paths below one that will not be a directory: they are removed with it. */
function withoutHidden(wanted: readonly Wanted[]): Wanted[] {
  const leaves = new Set(
    wanted.filter(({ now }) => now?.type !== "directory").map(({ path }) => keyOf(path)),
  );
  return wanted.filter(({ path }) => !isBelowOneOf(keyOf(path), leaves));
}

/** Lists everything that the host has in a directory, at any depth. Errors: those of a scan. */
export async function hostDirectory(path: Buffer, now: TreeNow): Promise<Wanted[]> {
  const { tree, signal } = now;
  const keeper = await tree.keeper();
  const [target, stage] = [MERGED_PATH, newStage()];
  const found: Wanted[] = [];
  // A scan against an empty directory reports every path as added.
  await makeStage(keeper, { target, stage, signal });
  try {
    const directory = below(BASE_PATH, path);
    await scanChanges(keeper, {
      base: `${target}/${stage.name}`,
      merged: directory,
      upper: directory,
      leftOut: tree.leftOut.flatMap((name) => relativeTo(path, Buffer.from(name)) ?? []),
      signal,
      onChanges(changes) {
        for (const { path: inside, now: state } of changes)
          if (state !== null) found.push(wanted(Buffer.concat([path, slash, inside]), state, now));
      },
    });
  } finally {
    await recoverTree(keeper, { target, stage });
  }
  return found;
}

function wanted(path: Buffer, state: PresentState, now: TreeNow): Wanted {
  const isFile = state.type === "file";
  return { path, now: state, content: isFile ? async () => await hostContent(state, path, now) : null };
}

/** Reads the content of one of the host's files. */
async function hostContent(
  { sizeBytes }: Pick<PresentState, "sizeBytes">,
  path: Buffer,
  { tree, signal }: Pick<TreeNow, "tree" | "signal">,
): Promise<Content> {
  return fileContent(await tree.keeper(), below(BASE_PATH, path), { lengthBytes: sizeBytes, signal });
}

const slash = Buffer.from("/");

/** The host's version of a file is stored only up to this size. */
const BASE_MAX_BYTES = 16 * 1024 * 1024;

export interface EntryStore {
  changes: LiveChanges;
  contents: ContentStore;
  /** Called with the size of each content that was not in the store yet. */
  onStored(sizeBytes: number): void;
  count: CopyCount;
  signal: AbortSignal | undefined;
}

/**
 * Stores the content of a changed path, and at its first change also the host's version. Returns null if the
 * path was removed or replaced after the scan; the next scan will report that. Errors: those of reading and
 * of storing.
 */
export async function storeEntry(
  { base, ...change }: SeenChange,
  previous: ManifestEntry | undefined,
  store: EntryStore,
): Promise<ManifestEntry | null> {
  const seen = { base, ...change };
  try {
    const storing = [
      change.now?.type === "file" ? storeContent(seen, store) : null,
      storeBase(seen, previous, store),
    ] as const;
    // After a failure of one, the other may not go on writing to a store that is removed.
    await Promise.allSettled(storing);
    const [sha256, baseSha256] = await Promise.all(storing);
    return { change, sha256, base, baseSha256 };
  } catch (error) {
    if (isGone(error)) return null;
    throw error;
  }
}

async function storeContent(seen: SeenChange, store: EntryStore): Promise<string> {
  const content = await store.changes.content(seen, store.signal);
  return await store.count.file(occupiedBytes(seen.now), content, (counted) => add(counted, store));
}

async function storeBase(
  seen: SeenChange,
  previous: ManifestEntry | undefined,
  store: EntryStore,
): Promise<string | null> {
  const { before, base } = seen;
  if (previous !== undefined && isSameBase(previous.base, base)) return previous.baseSha256 ?? null;
  const isKept =
    before?.type === "symlink" || (before?.type === "file" && before.sizeBytes <= BASE_MAX_BYTES);
  // If the host has changed the file since, its earlier version no longer exists.
  if (!isKept || (base.state !== "unknown" && !isSameBase(base, { ...base, state: before }))) return null;
  try {
    const content = await store.changes.readHost(seen, { maxBytes: BASE_MAX_BYTES, signal: store.signal });
    return await add(content, store);
  } catch (error) {
    if (isGone(error) || isBrigError(error, "file.too-large")) return null;
    throw error;
  }
}

async function add(content: Content, store: EntryStore): Promise<string> {
  const { sha256, sizeBytes, isNew } = await store.contents.add(content);
  if (isNew) store.onStored(sizeBytes);
  return sha256;
}

/** Whether two entries have the same content, mode and owner. Times and inode numbers are not compared. */
export function isSameEntry(one: ManifestEntry | undefined, other: ManifestEntry | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  return one.sha256 === other.sha256 && isSameVersion(one.change.now, other.change.now);
}

function isSameVersion(one: PresentState | null, other: PresentState | null): boolean {
  if (one === null || other === null) return one === other;
  return (
    one.type === other.type &&
    one.mode === other.mode &&
    one.uid === other.uid &&
    one.gid === other.gid &&
    one.rdev === other.rdev &&
    (one.linkTarget === null || (other.linkTarget !== null && one.linkTarget.equals(other.linkTarget)))
  );
}
