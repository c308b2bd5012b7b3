/**
 * Files that a session's sandboxes left on the host and that may run by themselves later, such as git hooks.
 */
export interface SessionReceipt {
  readonly findings: readonly ReceiptFinding[];
  /** The number of further findings, which are not listed. */
  readonly omitted: number;
  /** Number of findings for each name, or for each other reason, of which some are not listed. */
  readonly counts?: readonly { readonly name: string; readonly count: number }[] | undefined;
  /** Why not everything was examined; null if it was. */
  readonly incomplete: string | null;
  /** Result for the commits that were made in a copy of the repository. Absent if there was no copy. */
  readonly branch?: SessionBranchArrival | undefined;
  /** The changes of a copy-on-write workspace that were kept. */
  readonly changes?: { readonly snapshot: string; readonly count: number } | undefined;
}

/** The branch that received the commits of a session, or the reason why none did. */
export type SessionBranchArrival =
  | {
      readonly kind: "arrived";
      readonly branch: string;
      readonly commit: string;
      readonly commits: number;
      readonly notTaken: readonly string[];
    }
  | { readonly kind: "nothing-new"; readonly notTaken: readonly string[] }
  | { readonly kind: "failed"; readonly message: string; readonly hint: string | null };

/** A file that runs by itself later, and why brig says so. */
export interface ReceiptFinding {
  readonly path: string;
  readonly reasons: readonly string[];
  /** Programs that run or obey a file of this name, and when. */
  readonly obeyedBy?: string | undefined;
  readonly sha256: string | null;
  readonly isNeutralised: boolean;
}

/** Joins the receipts of a session's sandboxes, which may have worked in the same directories. */
export class Receipts {
  readonly #findings = new Map<string, ReceiptFinding>();
  readonly #counts = new Map<string, number>();
  #omitted = 0;
  #incomplete: string | null = null;
  #branch: SessionBranchArrival | undefined;
  #changes: SessionReceipt["changes"];

  /** Adds what a sandbox's `close` resolved to; anything but a receipt is ignored. */
  add(receipt: unknown): void {
    if (!isReceipt(receipt)) return;
    for (const finding of receipt.findings) {
      const known = this.#findings.get(finding.path)?.reasons ?? [];
      this.#findings.set(finding.path, {
        ...finding,
        reasons: [...new Set([...known, ...finding.reasons])],
      });
    }
    this.#omitted += receipt.omitted;
    for (const { name, count } of receipt.counts ?? [])
      this.#counts.set(name, (this.#counts.get(name) ?? 0) + count);
    this.#incomplete ??= receipt.incomplete;
    this.#branch = receipt.branch ?? this.#branch;
    this.#changes = receipt.changes ?? this.#changes;
  }

  /** Null if there is nothing to report. */
  get all(): SessionReceipt | null {
    const findings = [...this.#findings.values()];
    const counts = [...this.#counts].map(([name, count]) => ({ name, count }));
    const [branch, changes] = [this.#branch, this.#changes];
    const isEmpty = findings.length === 0 && this.#omitted === 0 && this.#incomplete === null;
    if (isEmpty && branch === undefined && changes === undefined) return null;
    return {
      findings,
      omitted: this.#omitted,
      ...(counts.length > 0 && { counts }),
      incomplete: this.#incomplete,
      ...(branch && { branch }),
      ...(changes && { changes }),
    };
  }
}

function isReceipt(value: unknown): value is SessionReceipt {
  return typeof value === "object" && value !== null && "findings" in value && Array.isArray(value.findings);
}
