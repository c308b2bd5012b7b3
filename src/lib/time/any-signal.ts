import { sharedSignal } from "./shared-signal.js";

/**
 * Aborts with the first of several signals, and its reason, until it is disposed of. Unlike `AbortSignal.any`
 * it keeps its sources alive: a time limit that is garbage-collected never fires.
 */
export class AnySignal implements Disposable {
  readonly #own = new AbortController();
  readonly #sources: AbortSignal[] = [];

  constructor(sources: readonly (AbortSignal | undefined)[]) {
    sharedSignal(this.#own.signal);
    for (const source of sources) if (source !== undefined) this.#follow(source);
  }

  get signal(): AbortSignal {
    return this.#own.signal;
  }

  [Symbol.dispose](): void {
    // Its own list of sources and not a signal for the listeners: a call of brig serve makes several of these, and a
    // second controller for each took a tenth of a call's time.
    for (const source of this.#sources.splice(0)) source.removeEventListener("abort", this.#abort);
  }

  readonly #abort = ({ target }: Event) => this.#own.abort((target as AbortSignal).reason);

  #follow(source: AbortSignal): void {
    if (source.aborted) return void this.#own.abort(source.reason);
    this.#sources.push(source);
    sharedSignal(source).addEventListener("abort", this.#abort, { once: true });
  }
}
