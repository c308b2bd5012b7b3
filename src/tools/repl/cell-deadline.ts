import type { ToolActivity } from "../tool.js";

/** Ends a cell when its time is over. What a person takes to answer what the cell asks does not count. */
export class CellDeadline implements Disposable {
  readonly #over = new AbortController();
  #leftMs: number;
  #startedAt = 0;
  #timer: NodeJS.Timeout | null = null;
  #questions = 0;

  constructor(timeoutMs: number) {
    this.#leftMs = timeoutMs;
    this.#run();
  }

  get signal(): AbortSignal {
    return this.#over.signal;
  }

  note({ kind }: ToolActivity): void {
    if (kind === "approval-requested" && this.#questions++ === 0) this.#hold();
    if (kind === "approval-answered" && --this.#questions === 0) this.#run();
  }

  [Symbol.dispose](): void {
    this.#hold();
  }

  #run(): void {
    this.#startedAt = performance.now();
    this.#timer = setTimeout(() => {
      this.#over.abort(new DOMException("the cell took too long", "TimeoutError"));
    }, this.#leftMs);
  }

  #hold(): void {
    if (this.#timer === null) return;
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#leftMs = Math.max(this.#leftMs - (performance.now() - this.#startedAt), 0);
  }
}
