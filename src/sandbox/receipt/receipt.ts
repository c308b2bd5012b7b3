/** Files that a session left on the host, and that deserve a look before anything there is run. */
export interface Receipt {
  /** The dangerous first; at most 500. For each name, the one that lies highest is always among them. */
  findings: Finding[];
  /** The number of further findings that are not listed. */
  omitted: number;
  /** The number of findings for each name or other reason of which some are not listed. */
  counts?: FindingCount[] | undefined;
  /**
   * Why not everything was looked at. "time": the tree is too large; "closed": a directory could not be
   * entered; "gone": the container had ended; "kept": the sandbox goes on; "failed": the runner gave no
   * proper answer.
   */
  incomplete: "time" | "closed" | "gone" | "kept" | "failed" | null;
  /** The arrival on the host of the commits that were made with `git: "branch"`. */
  branch?: BranchArrival | undefined;
  /** The changes in a copy-on-write workspace, if they were kept. The library keeps only what `snapshot` is asked for. */
  changes?: KeptChanges | undefined;
}

/** Changes of a copy-on-write workspace that were kept when its session ended. */
export interface KeptChanges {
  /** The id of the snapshot. */
  snapshot: string;
  /** The directory of the host. */
  workspace: string;
  /** The number of changed paths. */
  count: number;
}

/**
 * "arrived": the branch is in the host's repository; "nothing-new": there was no new commit; "failed": nothing of
 * the host's repository was changed. `notTaken` are other branches that have new commits in the sandbox, at most
 * 20: only the checked-out one arrives.
 */
export type BranchArrival =
  | { kind: "arrived"; branch: string; commit: string; commits: number; notTaken: string[] }
  | { kind: "nothing-new"; notTaken: string[] }
  | { kind: "failed"; message: string; hint: string | null };

/** `name` is a name as in `.vscode/` or `*.pth`, or the reason for findings that have no such name. */
export interface FindingCount {
  name: string;
  count: number;
}

/** A file that was made or changed during the session, or has got its place by a renamed directory. */
export interface Finding {
  /** The path on the host and in the sandbox. Bytes that are not UTF-8 are replaced. */
  path: string;
  reasons: FindingReason[];
  /** For the reason "runs": the program that runs or obeys it, and when. */
  obeyedBy?: string | undefined;
  /** Permission bits with setuid, setgid and sticky, as found. */
  mode: number;
  uid: number;
  sizeBytes: number;
  /** The hash in hex; null for a file that is too large or not regular. */
  sha256: string | null;
  /** Whether the bits or capabilities were taken away, or the device removed. */
  isNeutralised: boolean;
}

/**
 * "runs": programs run or obey a file of this name by themselves; "repository": git obeys it; "setuid": it
 * runs with the rights of its owner or group; "capabilities": it runs with kernel capabilities; "device": a
 * device node; "owner": it does not belong to the user who runs brig.
 */
export type FindingReason = "runs" | "repository" | "setuid" | "capabilities" | "device" | "owner";

export function emptyReceipt(incomplete: Receipt["incomplete"] = null): Receipt {
  return { findings: [], omitted: 0, incomplete };
}
