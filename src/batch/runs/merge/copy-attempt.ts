import { constants } from "node:fs";
import { cp, lstat } from "node:fs/promises";
import { join } from "node:path";
import { makeDirectory } from "../../../lib/files/make-directory.js";
import { writeResult } from "../attempt/attempt.js";
import type { RunStore } from "../batch/run-store.js";
import type { AttemptResult } from "../results/attempt-result.js";
import { attemptFolder, tryFolder } from "../results/run-files.js";

/**
 * Copies the files of an attempt and of its earlier tries, under another number. False if the run has no files of it.
 * Links are left out, since a run of another machine could name any file of this one by them.
 */
export async function copyAttempt(
  from: RunStore,
  to: RunStore,
  { result, attempt }: { result: AttemptResult; attempt: number },
): Promise<boolean> {
  const place = { task: result.task, attempt };
  const target = to.attemptPath(place);
  const isThere = await copyDirectory(from.folder, attemptFolder(result), target);
  await makeDirectory(target);
  await writeResult(target, { ...result, attempt });
  for (let number = 1; number <= result.tries.length; number++) {
    const copy = join(to.folder, tryFolder(place, number));
    const earlier = await from.readResult(result, tryFolder(result, number));
    if (earlier !== null && (await copyDirectory(from.folder, tryFolder(result, number), copy)))
      await writeResult(copy, { ...earlier, attempt });
  }
  return isThere;
}

/** False if a part of the path is anything but a directory. */
async function copyDirectory(root: string, path: string, target: string): Promise<boolean> {
  const parts = path.split("/");
  for (let depth = 1; depth <= parts.length; depth++) {
    const directory = await lstat(join(root, ...parts.slice(0, depth))).catch(() => null);
    if (directory?.isDirectory() !== true) return false;
  }
  await cp(join(root, path), target, {
    recursive: true,
    errorOnExist: true,
    force: false,
    // Costs no space where the file system can share blocks.
    mode: constants.COPYFILE_FICLONE,
    filter: async (source) => {
      const entry = await lstat(source);
      return entry.isFile() || entry.isDirectory();
    },
  });
  return true;
}
