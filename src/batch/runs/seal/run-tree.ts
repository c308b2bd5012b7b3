import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { open, opendir } from "node:fs/promises";
import { join, posix } from "node:path";
import { isLockFileOf } from "../../../lib/file-lock.js";
import { runFiles } from "../results/run-files.js";
import { SEAL_FILE, type SealedFile } from "./statement.js";

/** Most files of a run are short. */
const CHUNK_BYTES = 64 * 1024;
const MAX_DEPTH = 128;

export interface RunTree {
  files: SealedFile[];
  /** Paths that cannot be sealed: neither file nor directory, unreadable, or too deep. */
  others: string[];
}

/**
 * Hashes all files of a run, following no link. What was set aside, the seal itself and locks are no part of a run.
 * Names are only those that the folder has, so none leads out of it.
 */
export async function hashRun(
  folder: string,
  {
    signal,
    onFile,
  }: { signal?: AbortSignal | undefined; onFile?: ((files: number) => void) | undefined } = {},
): Promise<RunTree> {
  const tree: RunTree = { files: [], others: [] };
  for await (const { name, isFile } of entriesOf(folder)) {
    signal?.throwIfAborted();
    const file = isFile ? await hashFile(join(folder, name), name) : null;
    if (file === null) tree.others.push(name);
    else tree.files.push(file);
    onFile?.(tree.files.length);
  }
  tree.files.sort((a, b) => (a.name < b.name ? -1 : 1));
  return tree;
}

async function* entriesOf(
  folder: string,
  below = "",
  depth = 0,
): AsyncGenerator<{ name: string; isFile: boolean }> {
  const directory = await opendir(join(folder, below)).catch(() => null);
  if (directory === null || depth > MAX_DEPTH) {
    yield { name: below, isFile: false };
    return;
  }
  for await (const entry of directory) {
    const name = posix.join(below, entry.name);
    if (depth === 0 && isNotSealed(entry.name)) continue;
    if (entry.isDirectory()) yield* entriesOf(folder, name, depth + 1);
    else yield { name, isFile: entry.isFile() };
  }
}

function isNotSealed(name: string): boolean {
  return name === SEAL_FILE || name === runFiles.superseded || isLockFileOf(name, runFiles.batch);
}

/** Null for what cannot be read. */
async function hashFile(path: string, name: string): Promise<SealedFile | null> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
    () => null,
  );
  if (file === null) return null;
  try {
    const hash = createHash("sha256");
    const buffer = Buffer.alloc(CHUNK_BYTES);
    let sizeBytes = 0;
    for (;;) {
      const { bytesRead } = await file.read(buffer, 0, CHUNK_BYTES);
      if (bytesRead === 0) break;
      hash.update(buffer.subarray(0, bytesRead));
      sizeBytes += bytesRead;
    }
    return { name, digest: { sha256: hash.digest("hex") }, annotations: { sizeBytes } };
  } catch {
    return null;
  } finally {
    await file.close();
  }
}
