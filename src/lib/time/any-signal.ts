import { sharedSignal } from "./shared-signal.js";

/**
 * Aborts with the first of several signals, and its reason, until it is disposed of. Unlike `AbortSignal.any`
 * it keeps its sources alive: a time limit that is garbage-collected never fires.
 */
export class AnySignal implements Disposable {
  readonly #own = new AbortController();
  readonly #over = new AbortController();

  constructor(sources: readonly (AbortSignal | undefined)[]) {
    for (const source of sources) if (source !== undefined) this.#follow(source);
  }

  get signal(): AbortSignal {
    return sharedSignal(this.#own.signal);
  }

  [Symbol.dispose](): void {
    // With a reason of its own: without one, Node makes an error with a stack for each, which nobody ever sees.
    this.#over.abort("over");
  }

  #follow(source: AbortSignal): void {
    const abort = () => this.#own.abort(source.reason);
    if (source.aborted) abort();
    else sharedSignal(source).addEventListener("abort", abort, { once: true, signal: this.#over.signal });
  }
}
