import { type BrigError, isBrigError } from "../../errors.js";

/**
 * What patching needs of a sandbox's files. Paths are absolute and resolved inside the sandbox. Failures are BrigErrors with
 * `file.*` codes whose `cause` carries the errno as Linux names it.
 */
export interface PatchFiles {
  /** Regular files only. */
  read(path: string, options: { maxBytes: number; signal?: AbortSignal | undefined }): Promise<Uint8Array>;
  /** Replaces the file atomically and keeps its mode; `mode` is for a new one. Follows symbolic links. */
  write(
    path: string,
    data: string,
    options: { mode: number; signal?: AbortSignal | undefined },
  ): Promise<void>;
  stat(
    path: string,
    options: { followSymlinks: boolean; signal?: AbortSignal | undefined },
  ): Promise<{ type: string; mode: number; dev: bigint; ino: bigint }>;
  mkdir(path: string, options: { recursive: true; signal?: AbortSignal | undefined }): Promise<void>;
  /** The name itself: of a link not what it points to. */
  remove(path: string, options: { signal?: AbortSignal | undefined }): Promise<void>;
}

/** Larger files are not patched: both versions and their lines are held in memory. */
export const MAX_FILE_BYTES = 64 * 1024 * 1024;

/** Why a file operation failed, in the operating system's words as models have seen them; any other error is thrown on. */
export function failureText(path: string, error: unknown): string {
  if (!isFileError(error)) throw error;
  if (error.code === "file.not-regular" || error.code === "file.is-directory")
    return `path \`${path}\` is not a file`;
  if (error.code === "file.too-large") return `file is larger than ${MAX_FILE_BYTES} bytes`;
  const known = errnoTexts[errnoOf(error)];
  return known === undefined ? error.message : `${known.text} (os error ${known.number})`;
}

export function isMissing(error: unknown): boolean {
  return isBrigError(error, "file.not-found");
}

function isFileError(error: unknown): error is BrigError {
  return isBrigError(error) && error.code.startsWith("file.");
}

function errnoOf({ cause }: BrigError): string {
  return cause instanceof Error && "code" in cause ? String(cause.code) : "";
}

const errnoTexts: Readonly<Record<string, { number: number; text: string }>> = {
  EPERM: { number: 1, text: "Operation not permitted" },
  ENOENT: { number: 2, text: "No such file or directory" },
  EIO: { number: 5, text: "I/O error" },
  ENOMEM: { number: 12, text: "Out of memory" },
  EACCES: { number: 13, text: "Permission denied" },
  EBUSY: { number: 16, text: "Resource busy" },
  ENOTDIR: { number: 20, text: "Not a directory" },
  EINVAL: { number: 22, text: "Invalid argument" },
  EMFILE: { number: 24, text: "No file descriptors available" },
  ETXTBSY: { number: 26, text: "Text file busy" },
  EFBIG: { number: 27, text: "File too large" },
  ENOSPC: { number: 28, text: "No space left on device" },
  EROFS: { number: 30, text: "Read-only file system" },
  ENAMETOOLONG: { number: 36, text: "Filename too long" },
  ENOTEMPTY: { number: 39, text: "Directory not empty" },
  ELOOP: { number: 40, text: "Symbolic link loop" },
  EDQUOT: { number: 122, text: "Quota exceeded" },
};
