import { mkdtemp, rm, statfs } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BrigError, isBrigError } from "../../errors.js";
import { noteRescue } from "../snapshots/rescued.js";
import { storeChangesIn } from "./sandbox-changes.js";
import { DEFAULT_MAX_BYTES, type Opened, requireTree } from "./take-snapshot.js";

/**
 * If the changes of a session could not be stored in `$BRIG_HOME`, for example because its disk is full, stores them in a new
 * temporary directory instead: with the sandbox they would be gone. Returns the error to show, which says where they are.
 */
export async function rescueChanges(opened: Opened, error: unknown): Promise<unknown> {
  // The note says that $BRIG_HOME has only an earlier state. If even the note cannot be written there, the error still says it.
  const note = async (home: string | null) => {
    const { id } = requireTree(opened, "close");
    await noteRescue(opened.settings.environment.brigHome, { id, home }).catch(() => undefined);
  };
  if (!isBrigError(error, "snapshot.failed")) {
    await note(null);
    return error;
  }
  const { message, code, errno, disk, hint } = error;
  const about = { code, errno, disk, cause: error };
  const home = await mkdtemp(join(tmpdir(), "brig-rescued-")).catch(() => null);
  try {
    if (home === null) throw error;
    const maxBytes = await mostBytes(home);
    const id = (await storeChangesIn(home, opened, { maxBytes })).slice(0, 8);
    await note(home);
    return new BrigError(`${message}\nthey are in ${home} instead`, {
      ...about,
      hint: `BRIG_HOME=${home} brig diff --id ${id} shows them, BRIG_HOME=${home} brig apply --id ${id} brings them to your files; then remove the directory`,
    });
  } catch {
    if (home !== null) await rm(home, { recursive: true, force: true }).catch(() => undefined);
    await note(null);
    return new BrigError(`${message}\nthey could not be stored in ${tmpdir()} either, and are lost`, {
      ...about,
      hint,
    });
  }
}

/** Temporary files may be in memory, and commands decide how much they change: half of it has to stay free. */
async function mostBytes(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory);
  return Math.min(DEFAULT_MAX_BYTES, Math.floor((bavail * bsize) / 2));
}
