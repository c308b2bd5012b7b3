import { AnySignal } from "./any-signal.js";
import { LONGEST_TIMER_MS } from "./pause.js";

/**
 * A time limit on something that waits, beside a signal that may end it sooner. It holds its timer itself: that of `AbortSignal.timeout`
 * is forgotten when the signal is collected, and then nothing ends the wait. Dispose of it when the wait is over.
 */
export class TimeLimit implements Disposable {
  readonly #over = new AbortController();
  readonly #either: AnySignal;
  readonly #timer: NodeJS.Timeout | undefined;

  /** `ms`: null for no limit but the signal. */
  constructor(ms: number | null, signal?: AbortSignal) {
    this.#either = new AnySignal([signal, this.#over.signal]);
    if (ms !== null) this.#timer = setTimeout(() => this.#end(), Math.min(ms, LONGEST_TIMER_MS));
  }

  /** Aborted with a `TimeoutError`, or with the reason of the signal that it was given. */
  get signal(): AbortSignal {
    return this.#either.signal;
  }

  /** Whether the time ran out, before or after the signal was aborted. */
  get isOver(): boolean {
    return this.#over.signal.aborted;
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#either[Symbol.dispose]();
  }

  #end(): void {
    this.#over.abort(new DOMException("the time limit is over", "TimeoutError"));
  }
}
