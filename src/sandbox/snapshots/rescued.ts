import { lstat, mkdir, readlink, rm, symlink } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import { namesIn } from "../../lib/files/names-in.js";
import { type HostProcesses, ownerState } from "../../lib/owner.js";
import {
  type DescribedSnapshot,
  describeSnapshot,
  directoryIn,
  listSnapshots,
  openPointLog,
  removeSnapshot,
} from "./snapshot-store.js";

const PREFIX = ".rescued.";
const LOST = "lost";

/** The last state of a session, which could not be stored in `$BRIG_HOME`. */
export interface Rescue {
  /** The id of the session's snapshot, which has earlier states in it if it exists. */
  id: string;
  /** The directory that has the state instead; null if it could not be stored there either. */
  home: string | null;
  /** The state there; null if it is lost or was removed since. */
  state: DescribedSnapshot | null;
}

/**
 * Notes that the snapshot does not have its session's last state, which is below `home`. As a symbolic link, since a
 * disk without room for a file has often room for one. Throws the file system's own errors.
 */
export async function noteRescue(brigHome: string, { id, home }: Pick<Rescue, "id" | "home">): Promise<void> {
  await mkdir(directoryIn(brigHome), { recursive: true, mode: 0o700 });
  await forgetRescue(brigHome, id);
  await symlink(home ?? LOST, join(directoryIn(brigHome), PREFIX + id));
}

/** Call it when the earlier states are removed. */
export async function forgetRescue(brigHome: string, id: string): Promise<void> {
  await rm(join(directoryIn(brigHome), PREFIX + id), { force: true });
}

/** All rescues that were noted, also those whose state is gone. */
export async function readRescues(brigHome: string): Promise<Rescue[]> {
  const names = await namesIn(directoryIn(brigHome));
  const noted = names.filter((name) => name.startsWith(PREFIX));
  return await Promise.all(noted.map((name) => readRescue(brigHome, name.slice(PREFIX.length))));
}

async function readRescue(brigHome: string, id: string): Promise<Rescue> {
  const target = await readlink(join(directoryIn(brigHome), PREFIX + id)).catch(() => LOST);
  const home = isAbsolute(target) ? target : null;
  const state =
    home !== null && (await isOwn(home)) ? await describeSnapshot(home, id).catch(() => null) : null;
  return { id, home, state };
}

/** The directory may be one for temporary files, in which another user may have made one of the same name since. */
async function isOwn(path: string): Promise<boolean> {
  const found = await lstat(path).catch(() => null);
  return found?.isDirectory() === true && found.uid === process.getuid?.();
}

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
