import { BrigError, isBrigError } from "../errors.js";

export interface OsError {
  number: number;
  text: string;
}

/** The errors of Linux in the words of musl, the C library of Codex's Linux program: models know these. */
export const osErrors = {
  EPERM: { number: 1, text: "Operation not permitted" },
  ENOENT: { number: 2, text: "No such file or directory" },
  EIO: { number: 5, text: "I/O error" },
  ENXIO: { number: 6, text: "No such device or address" },
  E2BIG: { number: 7, text: "Argument list too long" },
  ENOEXEC: { number: 8, text: "Exec format error" },
  EAGAIN: { number: 11, text: "Resource temporarily unavailable" },
  ENOMEM: { number: 12, text: "Out of memory" },
  EACCES: { number: 13, text: "Permission denied" },
  EBUSY: { number: 16, text: "Resource busy" },
  EEXIST: { number: 17, text: "File exists" },
  EXDEV: { number: 18, text: "Cross-device link" },
  ENOTDIR: { number: 20, text: "Not a directory" },
  EISDIR: { number: 21, text: "Is a directory" },
  EINVAL: { number: 22, text: "Invalid argument" },
  EMFILE: { number: 24, text: "No file descriptors available" },
  ETXTBSY: { number: 26, text: "Text file busy" },
  EFBIG: { number: 27, text: "File too large" },
  ENOSPC: { number: 28, text: "No space left on device" },
  EROFS: { number: 30, text: "Read-only file system" },
  ENAMETOOLONG: { number: 36, text: "Filename too long" },
  ENOTEMPTY: { number: 39, text: "Directory not empty" },
  ELOOP: { number: 40, text: "Symbolic link loop" },
  ESTALE: { number: 116, text: "Stale file handle" },
  EDQUOT: { number: 122, text: "Quota exceeded" },
} as const satisfies Record<string, OsError>;

const known: ReadonlyMap<string, OsError> = new Map(Object.entries(osErrors));

/** Rewords errors about the file for a model, after `what`. Other errors are thrown as they are. */
export async function withFileErrors<Result>(
  operation: () => Promise<Result>,
  what: string,
  { path, signal }: { path: string; signal?: AbortSignal | undefined },
): Promise<Result> {
  try {
    return await operation();
  } catch (error) {
    signal?.throwIfAborted();
    if (!isFileError(error)) throw error;
    const reason = path.includes("\0") ? "file name contained an unexpected NUL byte" : osErrorText(error);
    const { code, hint, errno } = error;
    throw new BrigError(`${what}: ${reason}`, { code, hint, errno, cause: error });
  }
}

/** Whether a file operation failed because of the file, and not because the sandbox is gone. */
export function isFileError(error: unknown): error is BrigError {
  return isBrigError(error) && error.code.startsWith("file.");
}

/** E.g. `No such file or directory (os error 2)`, or the error's own message if its errno is not known. */
export function osErrorText(error: BrigError): string {
  const osError = osErrorOf(error.errno);
  return osError === undefined ? error.message : describeOsError(osError);
}

export function osErrorOf(errno: string | undefined): OsError | undefined {
  return errno === undefined ? undefined : known.get(errno);
}

export function describeOsError({ text, number }: OsError): string {
  return `${text} (os error ${number})`;
}
