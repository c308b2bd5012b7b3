import { type BrigError, isBrigError } from "../../../errors.js";
import type { FileStat, Sandbox } from "../../../sandbox/index.js";

/** Whether the kernel refused what was asked of a file in a container, as it does if there is no such file. */
export function isRefusal(error: unknown): error is BrigError {
  return isBrigError(error) && error.code.startsWith("file.");
}

/** Null for what the kernel refuses. */
export async function unlessRefused<T>(operation: Promise<T>): Promise<T | null> {
  try {
    return await operation;
  } catch (error) {
    if (isRefusal(error)) return null;
    throw error;
  }
}

/** What is at a path of a container; a link at its end is not followed. Null for what the kernel does not say. */
export async function statOf({ files }: Sandbox, path: string): Promise<FileStat | null> {
  return await unlessRefused(files.stat(path, { followSymlinks: false }));
}
