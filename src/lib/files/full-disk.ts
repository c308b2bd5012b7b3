import { statfsSync } from "node:fs";
import { isDiskFull } from "../errno.js";

/** A `FullDisk` of an error. */
interface FullHomeDisk {
  owner: "brig";
  path: string;
  freeBytes: number | null;
  freeFiles: number | null;
}

/** The disk with brig's own files, if the error is that it, or this user's part of it, is full. */
export function fullDiskOfBrig(error: unknown, directory: string): FullHomeDisk | undefined {
  if (!isDiskFull(error)) return undefined;
  const about = { owner: "brig", path: directory } as const;
  try {
    const { bavail, bsize, files, ffree } = statfsSync(directory);
    return { ...about, freeBytes: bavail * bsize, freeFiles: files === 0 ? null : ffree };
  } catch {
    return { ...about, freeBytes: null, freeFiles: null };
  }
}
