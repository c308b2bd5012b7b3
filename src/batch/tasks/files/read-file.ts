import { createHash } from "node:crypto";
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";

/**
 * These calls do not yield: for the many small files of many tasks, promises take several times as long. A
 * FIFO does not block them, and a symbolic link is not followed.
 */
const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

export const CHUNK_BYTES = 1024 * 1024;

/** A whole regular file with its checksum; null if it is longer, or no regular file any more. */
export function readWhole(path: string, maxBytes: number): { bytes: Buffer; sha256: string } | null {
  const file = openSync(path, FLAGS);
  try {
    const stat = fstatSync(file);
    if (!stat.isFile() || stat.size > maxBytes) return null;
    const buffer = Buffer.alloc(stat.size);
    const length = fill(file, buffer);
    const bytes = buffer.subarray(0, length);
    return { bytes, sha256: createHash("sha256").update(bytes).digest("hex") };
  } finally {
    closeSync(file);
  }
}

interface HashedFile {
  bytes: number;
  isExecutable: boolean;
  sha256: string;
}

type HashResult = HashedFile | "not-a-file" | "too-large";

/**
 * The size is looked at first, so that a huge sparse file is not read. `onChunk` is awaited after each piece of a
 * large file.
 */
export async function hashFile(
  path: string,
  { maxBytes, onChunk }: { maxBytes: number; onChunk: () => Promise<void> },
): Promise<HashResult> {
  const file = openSync(path, FLAGS);
  try {
    const stat = fstatSync(file);
    if (!stat.isFile()) return "not-a-file";
    if (stat.size > maxBytes) return "too-large";
    const hash = createHash("sha256");
    const buffer = Buffer.allocUnsafe(Math.max(1, Math.min(CHUNK_BYTES, stat.size + 1)));
    let bytes = 0;
    for (let length = fill(file, buffer); length > 0; length = fill(file, buffer)) {
      hash.update(buffer.subarray(0, length));
      bytes += length;
      if (length < buffer.length) break;
      await onChunk();
    }
    return { bytes, isExecutable: (stat.mode & 0o111) !== 0, sha256: hash.digest("hex") };
  } finally {
    closeSync(file);
  }
}

/** Reads until the buffer is full or the file ends. Returns the number of bytes read. */
function fill(file: number, buffer: Buffer): number {
  let filled = 0;
  while (filled < buffer.length) {
    const read = readSync(file, buffer, filled, buffer.length - filled, null);
    if (read === 0) break;
    filled += read;
  }
  return filled;
}
