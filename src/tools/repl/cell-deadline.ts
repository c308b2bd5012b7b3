import type { ToolActivity } from "../tool.js";

/** The time limit of a cell. It pauses while a person answers an approval question of the cell. */
export class CellDeadline implements Disposable {
  readonly #over = new AbortController();
  #leftMs: number;
  #startedAt = 0;
  #timer: NodeJS.Timeout | null = null;
  #questions = 0;

  constructor(timeoutMs: number) {
    this.#leftMs = timeoutMs;
    this.#start();
  }

  get signal(): AbortSignal {
    return this.#over.signal;
  }

  note({ kind }: ToolActivity): void {
    if (kind === "approval-requested" && this.#questions++ === 0) this.#pause();
    if (kind === "approval-answered" && --this.#questions === 0) this.#start();
  }

  [Symbol.dispose](): void {
    this.#pause();
  }

  #start(): void {
    this.#startedAt = performance.now();
    this.#timer = setTimeout(() => {
      this.#over.abort(new DOMException("the cell took too long", "TimeoutError"));
    }, this.#leftMs);
  }

  #pause(): void {
    if (this.#timer === null) return;
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#leftMs = Math.max(this.#leftMs - (performance.now() - this.#startedAt), 0);
  }
}
