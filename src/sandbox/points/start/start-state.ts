import { isBrigError } from "../../../errors.js";
import type { LiveChanges } from "../../changes/live-changes.js";
import { keyOf } from "../../changes/path-key.js";
import type { ContentStore } from "../../snapshots/content-store.js";
import type { ManifestEntry } from "../../snapshots/manifest.js";
import type { EarlierBase } from "../../snapshots/snapshot-state.js";
import type { StoredSnapshot } from "../../snapshots/snapshot-store.js";
import type { BaseState, PresentState, TreeChange } from "../../tree/tree-state.js";
import type { TouchedScan } from "../touched-paths.js";

export interface StartRequest {
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
    const taken = entries.map((entry) => takeOver(entry, { from: snapshot.contents, contents }));
    // After a failure nothing may be written any more to what is removed then.
    await Promise.allSettled(taken);
    return await Promise.all(taken);
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
  if (now === null)
    return before === null ? null : { path, change: "deleted", now, before, entriesBelow: null };
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
