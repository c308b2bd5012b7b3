import { BrigError } from "../../errors.js";
import { errnoOf, systemReason } from "../../lib/errno.js";
import { fullDiskOfBrig } from "../../lib/files/full-disk.js";

/**
 * If the host's file system failed while something was stored, returns an error that explains this; otherwise
 * returns the error as it is.
 */
export function notStored(directory: string, cause: unknown): unknown {
  const errno = cause instanceof BrigError ? undefined : errnoOf(cause);
  if (errno === undefined) return cause;
  return new BrigError(
    `the changes of the workspace cannot be stored in ${directory}: ${systemReason(cause)}`,
    {
      code: "snapshot.failed",
      errno,
      disk: fullDiskOfBrig(cause, directory),
      hint: "make room there, or set BRIG_HOME to a directory that can be written to",
      cause,
    },
  );
}
