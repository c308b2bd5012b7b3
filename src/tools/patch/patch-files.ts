import { type BrigError, isBrigError } from "../../errors.js";
import { isFileError, osErrorText } from "../os-error.js";

/**
 * What patching needs of a sandbox's files. Paths are absolute and resolved inside the sandbox. Failures are BrigErrors with
 * `file.*` codes; their `errno` is what Linux calls the reason.
 */
export interface PatchFiles {
  /** Regular files only. */
  read(path: string, options: PatchPathOptions & { maxBytes: number }): Promise<Uint8Array>;
  /**
   * Writes files one after the other, up to the first that fails. Each is replaced atomically and keeps its mode; `mode` is for a
   * new one. Follows symbolic links.
   */
  writeEach(files: readonly PatchWrite[], options: PatchPathOptions): Promise<PatchWritesDone>;
  stat(
    path: string,
    options: PatchPathOptions & { followSymlinks: boolean },
  ): Promise<{ type: string; mode: number; dev: bigint; ino: bigint; linkTarget: string | null }>;
  mkdir(path: string, options: PatchPathOptions & { recursive: true }): Promise<void>;
  /** The name itself: of a link not what it points to. */
  remove(path: string, options: PatchPathOptions): Promise<void>;
}

/** Options of every file operation of a patch. */
export interface PatchPathOptions {
  /** Fail with `file.symlink` where a name of the path is a symbolic link, also one that is put there meanwhile. */
  refuseSymlinks?: boolean | undefined;
  signal?: AbortSignal | undefined;
}

/** A file to write. `mode` is its permission bits, as in 0o644. */
export interface PatchWrite {
  path: string;
  data: string;
  mode: number;
}

/** How far the writes of a patch got. */
export interface PatchWritesDone {
  /** How many files were written, from the first on. */
  written: number;
  /** Why the one after them was not, the reason of an abort included; else null. */
  failure: unknown;
}

/** The same files, but no link is followed on the way to them. */
export function withoutLinks(files: PatchFiles): PatchFiles {
  const refuseSymlinks = true;
  return {
    read: (path, options) => files.read(path, { ...options, refuseSymlinks }),
    writeEach: (writes, options) => files.writeEach(writes, { ...options, refuseSymlinks }),
    stat: (path, options) => files.stat(path, { ...options, refuseSymlinks }),
    mkdir: (path, options) => files.mkdir(path, { ...options, refuseSymlinks }),
    remove: (path, options) => files.remove(path, { ...options, refuseSymlinks }),
  };
}

/** Larger files are not patched: both versions and their lines are held in memory. */
export const MAX_FILE_BYTES = 64 * 1024 * 1024;

/** Why edits were not made. */
export interface EditFailure {
  /** As the model reads it. File names in it can be any text. */
  reason: string;
  /** What Linux calls the failure of a file operation; undefined where the edits themselves are wrong. */
  errno?: string | undefined;
}

/** Why a file operation failed; any error that is not about the file is thrown on. */
export function failureOf(path: string, error: unknown): EditFailure {
  if (!isFileError(error)) throw error;
  return { reason: failureText(path, error), errno: error.errno };
}

/** The same, said of an edit. */
export function failedTo(edit: string, { reason, errno }: EditFailure): EditFailure {
  return { reason: `Failed to ${edit}: ${reason}`, errno };
}

/** In the operating system's words as models have seen them. */
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
