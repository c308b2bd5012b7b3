import { formatBytes } from "../lib/bytes.js";
import { LongWork } from "../lib/terminal/progress.js";
import { formatDuration } from "../lib/time/durations.js";
import { comma, Estimate } from "../lib/time/estimate.js";
import type { CopiedChanges, OnCopied } from "../sandbox/index.js";
import type { CliContext } from "./context.js";
import { usesColour } from "./render.js";

/** Shows on stderr what is done and for how long already, once that is more than two seconds, until the result is disposed of. */
export function showWork(context: CliContext, what: string): Disposable {
  return new LongWork(context.stderr, elapsedOf(what), { usesColour: usesColour(context) });
}

function elapsedOf(what: string): (now: number) => string {
  const beganAt = performance.now();
  return (now) => `${what}, ${formatDuration(Math.round((now - beganAt) / 1000) * 1000)}`;
}

/** Small files take about as long as this many bytes of a large one. */
const FILE_BYTES = 256 * 1024;

/** Shows what is done with changed files: how many are copied, and how long the rest may take. Before and after that, for how long already. */
export class ChangesWork implements Disposable {
  readonly #work: LongWork;
  #copied: CopiedChanges | null = null;
  #estimate: Estimate | null = null;

  constructor(context: CliContext, what: string) {
    const elapsed = elapsedOf(what);
    const describe = (now: number) => {
      const copied = this.#copiedText(now);
      return copied === null ? elapsed(now) : `${what}, ${copied}`;
    };
    this.#work = new LongWork(context.stderr, describe, { usesColour: usesColour(context) });
  }

  readonly onCopied: OnCopied = (copied) => {
    const now = performance.now();
    this.#copied = copied;
    this.#estimate ??= new Estimate("bytes", now);
    const { files, bytes, totalFiles, totalBytes } = copied;
    const total = totalBytes + totalFiles * FILE_BYTES;
    this.#estimate.update({ done: bytes + files * FILE_BYTES, total }, now);
  };

  #copiedText(now: number): string | null {
    if (this.#copied === null || this.#copied.files >= this.#copied.totalFiles) return null;
    const { files, bytes, totalFiles, totalBytes } = this.#copied;
    const done =
      totalBytes > totalFiles * FILE_BYTES
        ? `${formatBytes(bytes)} of ${formatBytes(totalBytes)}`
        : `${files} of ${totalFiles} files`;
    return `${done}${comma(this.#estimate?.leftText(now) ?? "")}`;
  }

  [Symbol.dispose](): void {
    this.#work[Symbol.dispose]();
  }
}
