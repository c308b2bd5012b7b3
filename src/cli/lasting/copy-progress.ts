import { Readable } from "node:stream";
import type { CliContext } from "../../command/index.js";
import { usesColour } from "../../command/index.js";
import { LongWork } from "../../lib/terminal/progress.js";
import { Estimate } from "../../lib/time/estimate.js";

/** Whoever copies little need not wait for somebody to look how much it is. */
const MEASURED_AFTER_MS = 1000;

/** Shows on stderr how much of an archive has been copied, if that takes longer than two seconds. */
export class CopyProgress implements Disposable {
  readonly #estimate = new Estimate("bytes", performance.now());
  readonly #over = new AbortController();
  readonly #timer: NodeJS.Timeout | undefined;
  readonly #work: LongWork;
  #done = 0;
  #total: number | null = null;

  /** @param measure Finds out about how long the archive is; null if nobody knows. */
  constructor(context: CliContext, measure: ((over: AbortSignal) => Promise<number>) | null) {
    if (measure !== null)
      this.#timer = setTimeout(() => void this.#measure(measure), MEASURED_AFTER_MS).unref();
    const describe = (now: number) => `copied ${this.#estimate.text(now)}`;
    this.#work = new LongWork(context.stderr, describe, { usesColour: usesColour(context) });
  }

  /** The same bytes, which are counted as they are read. */
  counted(archive: Readable): Readable {
    return Readable.from(this.#count(archive), { objectMode: false });
  }

  async *#count(archive: Readable): AsyncGenerator<Uint8Array> {
    for await (const piece of archive as AsyncIterable<Uint8Array>) {
      this.#done += piece.length;
      this.#take();
      yield piece;
    }
  }

  /** Without the total there is no estimate, and the copy goes on all the same. */
  async #measure(measure: (over: AbortSignal) => Promise<number>): Promise<void> {
    this.#total = await measure(this.#over.signal).catch(() => null);
    this.#take();
  }

  #take(): void {
    const total = this.#total === null ? null : Math.max(this.#total, this.#done);
    this.#estimate.update({ done: this.#done, total }, performance.now());
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#over.abort();
    this.#work[Symbol.dispose]();
  }
}
