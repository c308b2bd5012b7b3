/** What a session left on the host that is worth a look before anything there is run. */
export interface Receipt {
  /** In the order they were found; at most 500. */
  findings: Finding[];
  /** Further ones that are not listed. */
  omitted: number;
  /**
   * Null when everything that changed was looked at. "time": the tree was too large for the time there is;
   * "closed": something could not be entered; "gone": the container had ended by then; "kept": the sandbox
   * goes on; "failed": its runner did not answer as it should.
   */
  incomplete: "time" | "closed" | "gone" | "kept" | "failed" | null;
}

/** A file that was made or changed during the session. */
export interface Finding {
  /** On the host and in the sandbox. What is not UTF-8 in it is replaced. */
  path: string;
  reasons: FindingReason[];
  /** Permission bits and setuid, setgid, sticky, as they were found. */
  mode: number;
  uid: number;
  sizeBytes: number;
  /** Hex; null for what is no regular file, or too large. */
  sha256: string | null;
  /** The bits or capabilities were taken away, or the device removed. */
  isNeutralised: boolean;
}

/**
 * "runs": programs run or obey a file of this name without being asked; "repository": git obeys what is in
 * it; "setuid": it runs with its owner's or group's rights; "capabilities": it runs with rights of the
 * kernel's; "device": a device node; "owner": it belongs to another user than the one who runs brig.
 */
export type FindingReason = "runs" | "repository" | "setuid" | "capabilities" | "device" | "owner";

export function emptyReceipt(incomplete: Receipt["incomplete"] = null): Receipt {
  return { findings: [], omitted: 0, incomplete };
}
