import { isBrigError } from "../../errors.js";
import { someAtOnce } from "../../lib/time/gate.js";
import { FILES_AT_ONCE } from "../changes/commit.js";
import type { NewFork } from "../changes/fork.js";
import type { LiveChanges } from "../changes/live-changes.js";
import { keyOf, type SeenChange } from "../changes/workspace-change.js";
import { fileContent } from "../files/file-reads.js";
import { isGone } from "../files/file-request.js";
import { below, FROM_PATH, type WorkspaceTree } from "../overlay/workspace-tree.js";
import type { ContentStore } from "../snapshots/content-store.js";
import type { ManifestEntry } from "../snapshots/manifest.js";
import type { EarlierBase, StoredSnapshot } from "../snapshots/snapshot-store.js";
import type { BaseState, PresentState, TreeChange } from "../tree/tree-changes.js";
import type { TouchedScan } from "./touched-paths.js";
import { statIn } from "./wanted.js";

/**
 * The state that a fork was made with. What the first call has changed is read from the workspace that was forked,
 * if it is still the same there; otherwise that content is lost, and a state that needs it cannot be made again.
 */
export function startOfFork(tree: WorkspaceTree, fork: NewFork): StartState {
  return async (request) => {
    const { signal } = request;
    const read = async (seen: SeenChange): Promise<ManifestEntry> => {
      const { base, ...change } = seen;
      const isFile = change.now?.type === "file";
      const sha256 = isFile ? await storeContent(seen, { ...request, tree, fork }) : null;
      return { change, sha256, base, baseSha256: null };
    };
    return await someAtOnce([...fork.entries.values()], read, { width: FILES_AT_ONCE, signal });
  };
}

async function storeContent(
  seen: SeenChange,
  { scan, changes, contents, signal, tree, fork }: StartRequest & { tree: WorkspaceTree; fork: NewFork },
): Promise<string | null> {
  const { path, now } = seen;
  const [there, own] = [scan.all.get(keyOf(path))?.now, fork.own.get(keyOf(path))];
  const isOwn = there != null && there.ino === own?.ino && there.changedNs === own.changedNs;
  try {
    if (isOwn) {
      const content = await changes.content(seen, signal);
      return (await contents.add(content)).sha256;
    }
    const parents = await statIn(FROM_PATH, path, { tree, signal });
    if (now === null || parents === null) return null;
    const isSame = parents.ino === now.ino && parents.modifiedMs === Number(now.modifiedNs) / 1e6;
    if (!isSame || parents.sizeBytes !== now.sizeBytes) return null;
    const options = { lengthBytes: now.sizeBytes, signal };
    return (await contents.add(fileContent(await tree.keeper(), below(FROM_PATH, path), options))).sha256;
  } catch (error) {
    if (isGone(error)) return null;
    throw error;
  }
}

interface StartRequest {
  /** The first scan, which is made after the first call. */
  scan: TouchedScan;
  changes: LiveChanges;
  /** The store in which the contents have to be. */
  contents: ContentStore;
  signal: AbortSignal | undefined;
}

/** The differences between a tree and the host's files before any command ran, found out at its first restore point. */
export type StartState = (request: StartRequest) => Promise<ManifestEntry[]>;

/**
 * The state that a snapshot was restored to. `written` are the paths that were the host's own in the snapshot and
 * that the host has changed since.
 */
export function startOfSnapshot(snapshot: StoredSnapshot, written: readonly EarlierBase[]): StartState {
  return async ({ scan, contents }) => {
    const entries: ManifestEntry[] = [];
    for await (const entry of snapshot.entries()) entries.push(entry);
    for (const base of written) entries.push(...writtenEntry(base, scan));
    const take = (entry: ManifestEntry) => takeOver(entry, { from: snapshot.contents, contents });
    return await someAtOnce(entries, take, { width: FILES_AT_ONCE });
  };
}

/** The scan tells what the host has there by now. If it has the same, the path did not differ. */
function writtenEntry(
  { path, state, owner, baseSha256, hostBase }: EarlierBase,
  scan: TouchedScan,
): ManifestEntry[] {
  const touched = scan.all.get(keyOf(path));
  if (touched === undefined || touched.change === "same") return [];
  const { uid, gid } = owner ?? touched.now ?? { uid: 0, gid: 0 };
  const now = state === null ? null : { ...state, uid, gid, links: 1, rdev: 0n, linkTarget: null };
  const change = changeBetween(path, touched.before, now);
  if (change === null) return [];
  return [{ change, sha256: state?.type === "file" ? baseSha256 : null, base: hostBase, baseSha256: null }];
}

function changeBetween(path: Buffer, before: BaseState | null, now: PresentState | null): TreeChange | null {
  if (now === null) return before === null ? null : { path, change: "deleted", now, before };
  return before === null ? { path, change: "added", now, before } : { path, change: "modified", now, before };
}

/** A content that is missing by now is forgotten: only the state that needs it cannot be made again. */
async function takeOver(
  entry: ManifestEntry,
  { from, contents }: { from: ContentStore; contents: ContentStore },
): Promise<ManifestEntry> {
  const take = async (sha256: string | null | undefined) => {
    if (!sha256) return null;
    try {
      await contents.addFrom(from, sha256);
      return sha256;
    } catch (error) {
      if (isBrigError(error, "snapshot.invalid")) return null;
      throw error;
    }
  };
  return { ...entry, sha256: await take(entry.sha256), baseSha256: await take(entry.baseSha256) };
}
