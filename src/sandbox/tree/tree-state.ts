import type { FileType } from "../sandbox-types.js";

/** The attributes by which brig sees that a file has changed. Times are in nanoseconds since 1970. */
export interface FileState {
  type: FileType;
  /** Permission bits with setuid, setgid and sticky. */
  mode: number;
  sizeBytes: number;
  modifiedNs: bigint;
  changedNs: bigint;
  ino: bigint;
}

/** The state of a path in the changed tree. */
export interface PresentState extends FileState {
  uid: number;
  gid: number;
  /** The number of names the file has. Entries with the same `ino` are names of one file. */
  links: number;
  /** The bytes that a file occupies, as far as they are known: less than its size if it has holes. */
  allocatedBytes?: number | undefined;
  /** The device number of a device file; otherwise 0. */
  rdev: bigint;
  /** Null for everything that is not a symbolic link. May hold any bytes but NUL. */
  linkTarget: Buffer | null;
}

/** The bytes that a file occupies. Holes do not count, nor does the rounding up by the file system. */
export function occupiedBytes(state: PresentState | null): number {
  if (state?.type !== "file") return 0;
  return Math.min(state.sizeBytes, state.allocatedBytes ?? state.sizeBytes);
}

/** Tells whether a file or a symbolic link is the one it was, as it was. */
export type FileStamp = Pick<PresentState, "type" | "ino" | "sizeBytes" | "changedNs">;

/** The state of the path in the directory below the changed tree. */
export interface BaseState extends FileState {
  dev: bigint;
}

/** One path at which the changed tree differs from the one below it. */
export type TreeChange = {
  /**
   * Relative, without "." and "..". It can contain any byte but NUL, so it may not be UTF-8 and may contain
   * line breaks.
   */
  path: Buffer;
} & (
  | { change: "added"; now: PresentState; before: null }
  | { change: "modified"; now: PresentState; before: BaseState }
  /**
   * A deleted directory is one change, without changes for what was in it. `entriesBelow` is null unless
   * asked for.
   */
  | { change: "deleted"; now: null; before: BaseState; entriesBelow: number | null }
  /** Touched, but with the same content and mode as in the directory below. */
  | { change: "same"; now: PresentState; before: BaseState }
);
