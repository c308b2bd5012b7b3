/** The state of a copy-on-write workspace after a call, and what had changed since the one before. */
export interface SessionRestorePoint {
  /** The id of the snapshot that contains it. */
  readonly snapshot: string;
  /** The first point is 1. 0 stands for the state that the workspace began with. */
  readonly number: number;
  /** The number of changed paths. */
  readonly count: number;
  /** The first of them, sorted, relative to the workspace. */
  readonly changes: readonly PointChange[];
}

/** A path that had changed since the restore point before. */
export interface PointChange {
  readonly path: string;
  readonly change: "added" | "modified" | "deleted";
}

/** An undo of the changes of a workspace. */
export interface UndoneChanges {
  /** The restore point whose changes were undone. */
  readonly undone: SessionRestorePoint;
  /** The restore point that the undo has taken, with the paths that it changed. */
  readonly point: SessionRestorePoint;
  /** The restore point whose state the workspace has again; 0 for the beginning. */
  readonly restores: number;
}
