import { isOfRepository } from "../changes/path-filter.js";
import { isBelowOneOf, keyOf } from "../changes/path-key.js";
import type { ManifestEntry } from "../snapshots/manifest.js";
import { type PointEntry, pathOfEntry } from "../snapshots/point-lines.js";
import type { RestorePoint, RestorePointChange } from "./restore-point.js";

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
