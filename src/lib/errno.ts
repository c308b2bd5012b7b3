/** The system's name for the error, e.g. `ENOENT`; undefined if it is not a system error. */
export function errnoOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}

/** Whether a system call has failed because there is no room on a disk, or this user may use no more of it. */
export function isDiskFull(error: unknown): boolean {
  return ["ENOSPC", "EDQUOT"].includes(errnoOf(error) ?? "");
}

const reasons: Readonly<Record<string, string>> = {
  ENOSPC: "no space left on the device",
  EDQUOT: "the disk quota is used up",
  EROFS: "the file system is read-only",
  EACCES: "permission denied",
  EPERM: "operation not permitted",
  EEXIST: "it exists already",
  ENOENT: "no such file or directory",
  ENOTDIR: "a part of the path is not a directory",
  EFBIG: "the file is too large",
  EIO: "input/output error",
};

/** An error of a system call in words: "no space left on the device". Other errors keep their message. */
export function systemReason(error: unknown): string {
  return reasons[errnoOf(error) ?? ""] ?? (error instanceof Error ? error.message : String(error));
}
