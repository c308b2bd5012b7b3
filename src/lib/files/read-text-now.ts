import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";

/**
 * The text of a regular file, at once; null for everything else. A FIFO is never waited for, since that would block the
 * whole process.
 */
export function readTextNow(path: string, maxBytes = Number.POSITIVE_INFINITY): string | null {
  let file: number | undefined;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stat = fstatSync(file);
    return stat.isFile() && stat.size <= maxBytes ? readFileSync(file, "utf8") : null;
  } catch {
    return null;
  } finally {
    if (file !== undefined) closeSync(file);
  }
}
