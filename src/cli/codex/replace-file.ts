import { randomBytes } from "node:crypto";
import { open, realpath, rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { makeDirectory } from "../../lib/files/make-directory.js";

/** Creates a file or replaces its text atomically: a reader sees the old or the new text. Follows a symbolic link and keeps the mode. */
export async function replaceFile(path: string, text: string): Promise<void> {
  const target = await realpath(path).catch(() => path);
  const mode = (await stat(target).catch(() => null))?.mode ?? 0o644;
  await makeDirectory(dirname(target));
  const temporary = `${target}.${randomBytes(6).toString("hex")}`;
  try {
    const file = await open(temporary, "wx", mode & 0o777);
    try {
      await file.writeFile(text);
      await file.chmod(mode & 0o777);
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
