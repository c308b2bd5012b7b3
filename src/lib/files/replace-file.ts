import { randomBytes } from "node:crypto";
import { open, realpath, rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { makeDirectory } from "./make-directory.js";

/**
 * Creates a file or replaces its text atomically: a reader sees the old or the new text. Follows a symbolic link, and keeps the mode of a file
 * that is there.
 */
export async function replaceFile(path: string, text: string, newMode = 0o644): Promise<void> {
  const target = await realpath(path).catch(() => path);
  const mode = ((await stat(target).catch(() => null))?.mode ?? newMode) & 0o777;
  await makeDirectory(dirname(target));
  const temporary = `${target}.${randomBytes(6).toString("hex")}`;
  try {
    const file = await open(temporary, "wx", mode);
    try {
      await file.writeFile(text);
      await file.chmod(mode);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, target);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
