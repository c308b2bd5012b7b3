import { lstat, opendir } from "node:fs/promises";
import { join } from "node:path";

export interface TreeSize {
  /** The space that the files take on the disk. A file with several names counts once for each. */
  bytes: number;
  /** Files and directories, the top one not counted. */
  entries: number;
  /** Whether there is more: a directory could not be read, or the limits were reached. */
  isPartial: boolean;
}

interface SizeLimits {
  /** Stops once there are more. */
  maxBytes: number;
  maxEntries: number;
  signal?: AbortSignal | undefined;
}

/** Bytes in a block of `stat`. */
const BLOCK_BYTES = 512;

/**
 * Measures what a directory takes on the disk. It may hold anything: links are not followed, nothing is opened but
 * directories, and what vanishes meanwhile is not counted. Error: the signal's reason.
 */
export async function treeSize(top: string, { maxBytes, maxEntries, signal }: SizeLimits): Promise<TreeSize> {
  const size: TreeSize = { bytes: 0, entries: 0, isPartial: false };
  const waiting = [top];
  const seen = new Set<string>();
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    // A directory that is replaced by a link between these two is at worst counted elsewhere: nothing is shown of it.
    const directory = await opendir(path).catch(() => null);
    if (directory === null) size.isPartial = true;
    for await (const entry of directory ?? []) {
      signal?.throwIfAborted();
      if (size.entries >= maxEntries || size.bytes > maxBytes) return { ...size, isPartial: true };
      const inside = join(path, entry.name);
      const found = await lstat(inside).catch(() => null);
      if (found === null) continue;
      size.entries++;
      const identity = `${found.dev}:${found.ino}`;
      if (!seen.has(identity)) size.bytes += found.blocks * BLOCK_BYTES;
      if (found.nlink > 1 && !found.isDirectory()) seen.add(identity);
      if (found.isDirectory()) waiting.push(inside);
    }
  }
  return size;
}
