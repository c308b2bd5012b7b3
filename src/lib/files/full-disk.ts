import { statfsSync } from "node:fs";
import type { FullDisk } from "../../errors.js";
import { errnoOf } from "../errno.js";

/** The disk with brig's own files, if the error is that it, or this user's part of it, is full. */
export function fullDiskOfBrig(error: unknown, directory: string): FullDisk | undefined {
  if (!["ENOSPC", "EDQUOT"].includes(errnoOf(error) ?? "")) return undefined;
  const about = { owner: "brig", path: directory } as const;
  try {
    const { bavail, bsize, files, ffree } = statfsSync(directory);
    return { ...about, freeBytes: bavail * bsize, freeFiles: files === 0 ? null : ffree };
  } catch {
    return { ...about, freeBytes: null, freeFiles: null };
  }
}
