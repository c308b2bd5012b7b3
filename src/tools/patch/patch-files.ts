import { type BrigError, isBrigError } from "../../errors.js";
import { isFileError, osErrorText } from "../os-error.js";

/**
 * What patching needs of a sandbox's files. Paths are absolute and resolved inside the sandbox. Failures are
 * BrigErrors with `file.*` codes and the `errno` of the system call.
 */
export interface PatchFiles {
  /** Regular files only. */
  read(path: string, options: PatchPathOptions & { maxBytes: number }): Promise<Uint8Array>;
  /**
   * Writes files in order, up to the first failure. Replaces each file atomically and keeps its mode; `mode`
   * is for new files. Follows symbolic links.
   */
  writeEach(files: readonly PatchWrite[], options: PatchPathOptions): Promise<PatchWritesDone>;
  stat(
    path: string,
    options: PatchPathOptions & { followSymlinks: boolean },
  ): Promise<{ type: string; mode: number; dev: bigint; ino: bigint; linkTarget: string | null }>;
  mkdir(path: string, options: PatchPathOptions & { recursive: true }): Promise<void>;
  /** Removes a symbolic link itself, not its target. */
  remove(path: string, options: PatchPathOptions): Promise<void>;
}

/** Options of every file operation of a patch. */
interface PatchPathOptions {
  /** Fail with `file.symlink` if the path has a symbolic link, even one created during the operation. */
  refuseSymlinks?: boolean | undefined;
  signal?: AbortSignal | undefined;
}

/** A file to write. `mode` is its permission bits, as in 0o644. */
export interface PatchWrite {
  path: string;
  data: string;
  mode: number;
}

/** How many of the writes of a patch were done. */
interface PatchWritesDone {
  /** The number of files that were written. */
  written: number;
  /** Why the next file was not written, or the reason of an abort; null if all were written. */
  failure: unknown;
}

export function refusingSymlinks(files: PatchFiles): PatchFiles {
  const refuseSymlinks = true;
  return {
    read: (path, options) => files.read(path, { ...options, refuseSymlinks }),
    writeEach: (writes, options) => files.writeEach(writes, { ...options, refuseSymlinks }),
    stat: (path, options) => files.stat(path, { ...options, refuseSymlinks }),
    mkdir: (path, options) => files.mkdir(path, { ...options, refuseSymlinks }),
    remove: (path, options) => files.remove(path, { ...options, refuseSymlinks }),
  };
}

/** Larger files are not patched, since both versions and their lines are in memory. */
export const MAX_FILE_BYTES = 64 * 1024 * 1024;

/** Why edits were not made. */
export interface EditFailure {
  /** For the model. It contains file names, which can be any text. */
  reason: string;
  /** The errno of a failed file operation; undefined if the edits themselves are wrong. */
  errno?: string | undefined;
}

/** Converts the error of a file operation. Throws any other error, e.g. an abort. */
export function failureOf(path: string, error: unknown): EditFailure {
  if (!isFileError(error)) throw error;
  return { reason: failureText(path, error), errno: error.errno };
}

export function failedTo(edit: string, { reason, errno }: EditFailure): EditFailure {
  return { reason: `Failed to ${edit}: ${reason}`, errno };
}

function failureText(path: string, error: BrigError): string {
  if (error.code === "file.not-regular" || error.code === "file.is-directory")
    return `path \`${path}\` is not a file`;
  if (error.code === "file.symlink") return `path \`${path}\` leads through a symbolic link`;
  if (error.code === "file.too-large") return `file is larger than ${MAX_FILE_BYTES} bytes`;
  return osErrorText(error);
}

export function isMissing(error: unknown): boolean {
  return isBrigError(error, "file.not-found");
}
