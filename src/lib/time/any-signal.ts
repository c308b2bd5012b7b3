import { sharedSignal } from "./shared-signal.js";

/**
 * A signal that aborts when the first of several does, with that one's reason, until it is disposed of. Unlike what `AbortSignal.any`
 * gives, it holds what it follows: that one's sources may be collected while somebody waits for them, and a time limit among them then
 * never comes.
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

  /** From now on nothing aborts it, and nothing is left behind at what it followed. */
  [Symbol.dispose](): void {
    this.#over.abort();
  }

  #follow(source: AbortSignal): void {
    const abort = () => this.#own.abort(source.reason);
    if (source.aborted) abort();
    else sharedSignal(source).addEventListener("abort", abort, { once: true, signal: this.#over.signal });
  }
}
