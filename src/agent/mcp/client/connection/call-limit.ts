import { AnySignal } from "../../../../lib/time/any-signal.js";
import { LONGEST_TIMER_MS } from "../../../../lib/time/pause.js";

/**
 * The time limit of a call, combined with the caller's signal. `pause` stops the clock while a person is
 * asked.
 */
export class CallLimit implements Disposable {
  readonly #over = new AbortController();
  readonly #either: AnySignal;
  #leftMs: number;
  #timer: NodeJS.Timeout | undefined;
  #startedAt = 0;
  #pauses = 0;

  constructor(ms: number, signal: AbortSignal | undefined) {
    this.#leftMs = ms;
    this.#either = new AnySignal([signal, this.#over.signal]);
    this.#start();
  }

  get signal(): AbortSignal {
    return this.#either.signal;
  }

  get isOver(): boolean {
    return this.#over.signal.aborted;
  }

  /** Stops the clock until the returned function is called. */
  pause(): () => void {
    if (this.#pauses === 0) this.#stop();
    this.#pauses += 1;
    return () => {
      this.#pauses -= 1;
      if (this.#pauses === 0) this.#start();
    };
  }

  [Symbol.dispose](): void {
    this.#pauses = Number.POSITIVE_INFINITY;
    clearTimeout(this.#timer);
    this.#either[Symbol.dispose]();
  }

  #start(): void {
    this.#startedAt = performance.now();
    const end = () => this.#over.abort(new DOMException("the time limit is over", "TimeoutError"));
    this.#timer = setTimeout(end, Math.min(this.#leftMs, LONGEST_TIMER_MS));
  }

  #stop(): void {
    clearTimeout(this.#timer);
    this.#leftMs = Math.max(0, this.#leftMs - (performance.now() - this.#startedAt));
  }
}
