import { type HostProcesses, ownerState } from "../../lib/owner.js";
import { forgetRescue } from "./rescued.js";
import { describeSnapshot, listSnapshots, openPointLog, removeSnapshot } from "./snapshot-store.js";

/**
 * Removes the complete snapshots that last changed before that time, and returns their ids. One that a running
 * process still writes to stays, and so does one that cannot be read. With `dryRun` nothing is removed.
 */
export async function removeOldSnapshots(
  brigHome: string,
  { before, processes, dryRun }: { before: Date; processes: HostProcesses; dryRun: boolean },
): Promise<string[]> {
  const old: string[] = [];
  for (const id of await listSnapshots(brigHome)) {
    const snapshot = await describeSnapshot(brigHome, id).catch(() => null);
    if (snapshot === null || Date.parse(snapshot.changedAt) >= before.getTime()) continue;
    const { owner } = snapshot;
    if (owner != null && (await ownerState(owner, processes)) === "alive") continue;
    if (!dryRun) {
      await removeSnapshot(brigHome, id);
      await forgetRescue(brigHome, id);
    }
    old.push(id);
  }
  return old;
}

/** Removes the incomplete contents in snapshots whose process was killed, and returns their number. */
export async function removeUnfinishedContents(brigHome: string, processes: HostProcesses): Promise<number> {
  let removed = 0;
  for (const id of await listSnapshots(brigHome)) {
    const { owner } = (await describeSnapshot(brigHome, id).catch(() => null)) ?? {};
    if (owner == null || (await ownerState(owner, processes)) !== "gone") continue;
    const log = await openPointLog(brigHome, id).catch(() => null);
    removed += (await log?.contents.removeUnfinished()) ?? 0;
  }
  return removed;
}
