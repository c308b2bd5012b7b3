import { AnySignal } from "./any-signal.js";
import { LONGEST_TIMER_MS } from "./pause.js";

/**
 * A time limit, combined with a signal that may end the wait earlier. It keeps its own timer: that of
 * `AbortSignal.timeout` is lost when the signal is garbage-collected, and the wait never ends.
 */
export class TimeLimit implements Disposable {
  readonly #over = new AbortController();
  readonly #either: AnySignal;
  readonly #timer: NodeJS.Timeout | undefined;

  /** `ms`: null for no time limit. */
  constructor(ms: number | null, signal?: AbortSignal) {
    this.#either = new AnySignal([signal, this.#over.signal]);
    const end = () => this.#over.abort(new DOMException("the time limit is over", "TimeoutError"));
    if (ms !== null) this.#timer = setTimeout(end, Math.min(ms, LONGEST_TIMER_MS));
  }

  /** Aborted with a `TimeoutError`, or with the reason of the given signal. */
  get signal(): AbortSignal {
    return this.#either.signal;
  }

  get isOver(): boolean {
    return this.#over.signal.aborted;
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#either[Symbol.dispose]();
  }
}
