import { randomBytes } from "node:crypto";
import { open, rename, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * Writes a whole file that a crash at any moment leaves as it was or as it will be. A symbolic link of that
 * name is replaced, not followed.
 */
export async function writeDurably(
  path: string,
  content: string | AsyncIterable<string>,
  { mode = 0o644 }: { mode?: number } = {},
): Promise<void> {
  const unfinished = `${path}.${randomBytes(6).toString("hex")}.new`;
  try {
    const file = await open(unfinished, "wx", mode);
    try {
      await writeFile(file, content);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(unfinished, path);
  } catch (error) {
    await rm(unfinished, { force: true });
    throw error;
  }
  await syncDirectory(dirname(path));
}

/** Makes the names in a directory durable. Some file systems cannot, and need not. */
async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, "r");
  try {
    await directory.sync().catch(() => undefined);
  } finally {
    await directory.close();
  }
}
