import type { OnCopied } from "../changes/copied-changes.js";

/** A state of a copy-on-write workspace that can be restored. */
export interface RestorePoint {
  /** The id of the snapshot in which all points of this workspace are stored. */
  readonly snapshot: string;
  /** The first point is 1. The number 0 stands for the state at the start, which has no point. */
  readonly number: number;
  /** The number of paths that have changed since the point before. */
  readonly count: number;
  /** The first 100 of them, in the order of their bytes. */
  readonly changes: readonly RestorePointChange[];
}

/** A path that has changed between two restore points. A directory that was deleted stands for all that was in it. */
export interface RestorePointChange {
  /** The path relative to the workspace. Bytes that are not UTF-8 are replaced. */
  readonly path: string;
  readonly change: "added" | "modified" | "deleted";
}

/** Options for taking a restore point, and for restoring one. */
export interface RestorePointOptions {
  signal?: AbortSignal | undefined;
  /** Called with how much has been stored or put back; sandboxes of a service never call it. */
  onCopied?: OnCopied | undefined;
}

/** The result of an undo. */
export interface UndoneCall {
  /** The point of the call whose changes were undone. */
  readonly undone: RestorePoint;
  /** The point whose state the workspace has now; 0 for the start. */
  readonly restores: number;
  /** The point that the undo has taken, with the paths that it changed. */
  readonly point: RestorePoint;
}
