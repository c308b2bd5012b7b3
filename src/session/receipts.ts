/**
 * Files that a session's sandboxes left on the host and that may run by themselves later, such as git hooks.
 */
export interface SessionReceipt {
  readonly findings: readonly ReceiptFinding[];
  /** The number of further findings, which are not listed. */
  readonly omitted: number;
  /** Why not everything was examined; null if it was. */
  readonly incomplete: string | null;
}

/** A file that runs by itself later, and why brig says so. */
export interface ReceiptFinding {
  readonly path: string;
  readonly reasons: readonly string[];
  readonly sha256: string | null;
  readonly isNeutralised: boolean;
}

/** Joins the receipts of a session's sandboxes, which may have worked in the same directories. */
export class Receipts {
  readonly #findings = new Map<string, ReceiptFinding>();
  #omitted = 0;
  #incomplete: string | null = null;

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
    this.#incomplete ??= receipt.incomplete;
  }

  /** Null if there is nothing to report. */
  get all(): SessionReceipt | null {
    const findings = [...this.#findings.values()];
    if (findings.length === 0 && this.#omitted === 0 && this.#incomplete === null) return null;
    return { findings, omitted: this.#omitted, incomplete: this.#incomplete };
  }
}

function isReceipt(value: unknown): value is SessionReceipt {
  return typeof value === "object" && value !== null && "findings" in value && Array.isArray(value.findings);
}
