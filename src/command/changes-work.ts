import { formatBytes } from "../lib/bytes.js";
import { LongWork } from "../lib/terminal/progress.js";
import { formatDuration } from "../lib/time/durations.js";
import { comma, Estimate } from "../lib/time/estimate.js";
import type { CopiedChanges, OnCopied } from "../sandbox/index.js";
import type { CliContext } from "./context.js";
import { usesColour } from "./render.js";

/** Small files take about as long as this many bytes of a large one. */
const FILE_BYTES = 256 * 1024;

/** How many of the changed files are copied, and how long the rest may take. */
export class CopiedText {
  #copied: CopiedChanges | null = null;
  #estimate: Estimate | null = null;

  readonly onCopied: OnCopied = (copied) => {
    const now = performance.now();
    this.#copied = copied;
    this.#estimate ??= new Estimate("bytes", now);
    const { files, bytes, totalFiles, totalBytes } = copied;
    const total = totalBytes + totalFiles * FILE_BYTES;
    this.#estimate.update({ done: bytes + files * FILE_BYTES, total }, now);
  };

  /** "1204 of 40000 files, about 40 s left"; null before the first and after the last. `now` is of `performance.now()`. */
  at(now: number): string | null {
    if (this.#copied === null || this.#copied.files >= this.#copied.totalFiles) return null;
    const { files, bytes, totalFiles, totalBytes } = this.#copied;
    const done =
      totalBytes > totalFiles * FILE_BYTES
        ? `${formatBytes(bytes)} of ${formatBytes(totalBytes)}`
        : `${files} of ${totalFiles} files`;
    return `${done}${comma(this.#estimate?.leftText(now) ?? "")}`;
  }
}

/**
 * Shows on stderr what is done with changed files, once that takes more than two seconds, until this is disposed of: an estimate while they are copied,
 * and before and after that for how long it takes already.
 */
export class ChangesWork implements Disposable {
  readonly #copied = new CopiedText();
  readonly #work: LongWork;

  constructor(context: CliContext, what: string) {
    const beganAt = performance.now();
    const describe = (now: number) => {
      const elapsed = formatDuration(Math.round((now - beganAt) / 1000) * 1000);
      return `${what}, ${this.#copied.at(now) ?? elapsed}`;
    };
    this.#work = new LongWork(context.stderr, describe, { usesColour: usesColour(context) });
  }

  get onCopied(): OnCopied {
    return this.#copied.onCopied;
  }

  [Symbol.dispose](): void {
    this.#work[Symbol.dispose]();
  }
}
