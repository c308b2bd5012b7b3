import { existsSync, mkdirSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import { errnoOf } from "../errno.js";

/** Makes a directory and those above it that are missing, with this mode. Errors: the system's own. */
export async function makeDirectory(path: string, options: { mode?: number } = {}): Promise<void> {
  try {
    await mkdir(path, { ...options, recursive: true });
  } catch (error) {
    throw reasonOf(error, path);
  }
}

/** The same at once, for what is too short to be waited for. */
export function makeDirectorySync(path: string, options: { mode?: number } = {}): void {
  try {
    mkdirSync(path, { ...options, recursive: true });
  } catch (error) {
    throw reasonOf(error, path);
  }
}

/**
 * Node answers ENOENT for several other errors, such as EROFS on a disk that is read-only: of those it only looks whether the directory is
 * there. The system's own answer comes from making the topmost directory that is missing.
 */
function reasonOf(error: unknown, path: string): unknown {
  if (errnoOf(error) !== "ENOENT") return error;
  let missing = path;
  while (!existsSync(dirname(missing))) missing = dirname(missing);
  try {
    mkdirSync(missing);
    return error;
  } catch (reason) {
    return reason;
  }
}
