import { formatBytes } from "../lib/bytes.js";
import { LongWork, type ProgressOptions } from "../lib/terminal/progress.js";
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
    // What was known of the time for other files, or for something else, says nothing about these.
    const before = this.#copied;
    if (before !== null && (before.phase !== copied.phase || copied.files < before.files))
      this.#estimate = null;
    this.#copied = copied;
    this.#estimate ??= new Estimate("bytes", now);
    const { files, bytes, totalFiles, totalBytes } = copied;
    const total = totalBytes + totalFiles * FILE_BYTES;
    this.#estimate.update({ done: bytes + files * FILE_BYTES, total }, now);
  };

  /**
   * How far the copy is, such as "1204 of 40000 files, about 40 s left". While nothing can be counted, it is the elapsed time that the caller
   * gives, after what is waited for if that is known. `now` is a time of `performance.now()`.
   */
  at(now: number, elapsed = ""): string | null {
    if (this.#copied === null) return elapsed || null;
    const { files, totalFiles, phase } = this.#copied;
    const isCounted = files < totalFiles && (files > 0 || phase !== "placing");
    const counted = isCounted
      ? `${this.#amount(this.#copied)}${comma(this.#estimate?.leftText(now) ?? "")}`
      : "";
    const waitedFor = phase === undefined || (isCounted && phase === "placing") ? "" : WAITED_FOR[phase];
    return [waitedFor, counted || elapsed].filter((part) => part !== "").join(", ") || null;
  }

  #amount({ files, bytes, totalFiles, totalBytes, phase }: CopiedChanges): string {
    if (totalBytes > totalFiles * FILE_BYTES) return `${formatBytes(bytes)} of ${formatBytes(totalBytes)}`;
    return `${files} of ${totalFiles} files${phase === "placing" ? " in place" : ""}`;
  }
}

const WAITED_FOR = { waiting: "waiting for a restore point", placing: "putting the files in place" } as const;

/**
 * Shows on stderr what is done with changed files, once that takes more than two seconds, until this is disposed of: an estimate while they are copied,
 * and before and after that for how long it takes already.
 */
export class ChangesWork implements Disposable {
  readonly #copied = new CopiedText();
  readonly #work: LongWork;

  constructor(
    context: CliContext,
    what: string,
    { followsOutput }: Pick<ProgressOptions, "followsOutput"> = {},
  ) {
    const beganAt = performance.now();
    const describe = (now: number) => {
      const elapsed = formatDuration(Math.round((now - beganAt) / 1000) * 1000);
      return `${what}, ${this.#copied.at(now, elapsed)}`;
    };
    const options = { usesColour: usesColour(context), followsOutput };
    this.#work = new LongWork(context.stderr, describe, options);
  }

  get onCopied(): OnCopied {
    return this.#copied.onCopied;
  }

  [Symbol.dispose](): void {
    this.#work[Symbol.dispose]();
  }
}
