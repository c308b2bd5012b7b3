import { readCurrentProcess } from "../../lib/file-lock.js";
import { ownerState } from "../../lib/owner.js";
import type { LiveChanges } from "../changes/live-changes.js";
import { keyOf } from "../changes/path-key.js";
import { lockPoints, openPointLog, openSnapshot } from "../snapshots/snapshot-store.js";

interface AppliedRequest {
  brigHome: string;
  id: string;
  paths: readonly Buffer[];
  /** The changes of the sandbox that they were applied from. It knows what the host has now. */
  changes: LiveChanges;
}

const WAIT_MS = 10_000;

/**
 * Notes in a kept state that these paths were brought to the host, so that they are no changes any more. While
 * the session goes on, nothing is noted: it will find out itself. Errors: `snapshot.*`, those of the file system.
 */
export async function markApplied({ brigHome, id, paths, changes }: AppliedRequest): Promise<void> {
  const currentProcess = await readCurrentProcess();
  const { owner } = (await openSnapshot(brigHome, id)).head;
  if (owner != null && (await ownerState(owner, currentProcess.processes)) !== "gone") return;
  using lock = await lockPoints(brigHome, id, { currentProcess, waitMs: WAIT_MS });
  if (lock === null) return;
  const kept = new Set<string>();
  for await (const { change } of (await openSnapshot(brigHome, id)).entries()) kept.add(keyOf(change.path));
  const entries = paths
    .filter((path) => kept.has(keyOf(path)))
    .map((path) => ({ path, same: true as const, base: changes.baseOf(path) }));
  if (entries.length === 0) return;
  const { points } = await openPointLog(brigHome, id);
  await points.append({ at: new Date().toISOString(), kind: "applied" }, entries);
}
