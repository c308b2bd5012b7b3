import { isBrigError } from "../../errors.js";
import type { Content } from "../changes/commit/stage-contents.js";
import { isSameBase } from "../changes/host-conflict.js";
import type { LiveChanges } from "../changes/live-changes.js";
import type { SeenChange } from "../changes/seen-change.js";
import { isGone } from "../files/file-request.js";
import type { ContentStore } from "../snapshots/content-store.js";
import type { ManifestEntry } from "../snapshots/manifest.js";
import type { PresentState } from "../tree/tree-state.js";

/** The host's version of a file is stored only up to this size. */
const BASE_MAX_BYTES = 16 * 1024 * 1024;

export interface EntryStore {
  changes: LiveChanges;
  contents: ContentStore;
  /** Called with the size of each content that was not in the store yet. */
  onStored(sizeBytes: number): void;
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
  return await add(content, store);
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
