/** What a sandbox left on the host that runs by itself later; the words of each field are the sandbox's. */
export interface SessionReceipt {
  readonly findings: readonly ReceiptFinding[];
  /** Further ones that are not listed. */
  readonly omitted: number;
  /** Why not everything was looked at; null when it was. */
  readonly incomplete: string | null;
}

/** A file that runs by itself later, and why brig says so. */
export interface ReceiptFinding {
  readonly path: string;
  readonly reasons: readonly string[];
  readonly sha256: string | null;
  readonly isNeutralised: boolean;
}

/** The receipts of a session's sandboxes, which may have worked in the same directories, as one. */
export class Receipts {
  readonly #findings = new Map<string, ReceiptFinding>();
  #omitted = 0;
  #incomplete: string | null = null;

  /** What a sandbox gave when it was closed; one that gives no receipts leaves none. */
  add(given: unknown): void {
    if (!isReceipt(given)) return;
    for (const finding of given.findings) {
      const known = this.#findings.get(finding.path)?.reasons ?? [];
      this.#findings.set(finding.path, {
        ...finding,
        reasons: [...new Set([...known, ...finding.reasons])],
      });
    }
    this.#omitted += given.omitted;
    this.#incomplete ??= given.incomplete;
  }

  /** Null where there is nothing to tell. */
  get all(): SessionReceipt | null {
    const findings = [...this.#findings.values()];
    if (findings.length === 0 && this.#omitted === 0 && this.#incomplete === null) return null;
    return { findings, omitted: this.#omitted, incomplete: this.#incomplete };
  }
}

function isReceipt(given: unknown): given is SessionReceipt {
  return typeof given === "object" && given !== null && "findings" in given && Array.isArray(given.findings);
}
