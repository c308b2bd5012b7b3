import { isBrigError } from "../../errors.js";
import { isFileError, osErrorText } from "../os-error.js";

/**
 * What patching needs of a sandbox's files. Paths are absolute and resolved inside the sandbox. Failures are BrigErrors with
 * `file.*` codes whose `cause` carries the errno as Linux names it.
 */
export interface PatchFiles {
  /** Regular files only. */
  read(path: string, options: { maxBytes: number; signal?: AbortSignal | undefined }): Promise<Uint8Array>;
  /**
   * Writes files one after the other, up to the first that fails. Each is replaced atomically and keeps its mode; `mode` is for a
   * new one. Follows symbolic links.
   */
  writeEach(
    files: readonly PatchWrite[],
    options: { signal?: AbortSignal | undefined },
  ): Promise<PatchWritesDone>;
  stat(
    path: string,
    options: { followSymlinks: boolean; signal?: AbortSignal | undefined },
  ): Promise<{ type: string; mode: number; dev: bigint; ino: bigint; linkTarget: string | null }>;
  mkdir(path: string, options: { recursive: true; signal?: AbortSignal | undefined }): Promise<void>;
  /** The name itself: of a link not what it points to. */
  remove(path: string, options: { signal?: AbortSignal | undefined }): Promise<void>;
}

export interface PatchWrite {
  path: string;
  data: string;
  mode: number;
}

interface PatchWritesDone {
  /** How many files were written, from the first on. */
  written: number;
  /** Why the one after them was not, the reason of an abort included; else null. */
  failure: unknown;
}

/** Larger files are not patched: both versions and their lines are held in memory. */
export const MAX_FILE_BYTES = 64 * 1024 * 1024;

/** Why a file operation failed, in the operating system's words as models have seen them; any other error is thrown on. */
export function failureText(path: string, error: unknown): string {
  if (!isFileError(error)) throw error;
  if (error.code === "file.not-regular" || error.code === "file.is-directory")
    return `path \`${path}\` is not a file`;
  if (error.code === "file.too-large") return `file is larger than ${MAX_FILE_BYTES} bytes`;
  return osErrorText(error);
}

export function isMissing(error: unknown): boolean {
  return isBrigError(error, "file.not-found");
}
