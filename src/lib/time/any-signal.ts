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
    // One by one, and not by a signal that ends all listeners: that signal would need a controller of its own, which is
    // most of what an object of this class costs, and calls of brig serve make several.
    for (const source of this.#sources.splice(0)) source.removeEventListener("abort", this.#abort);
  }

  readonly #abort = ({ target }: Event) => this.#own.abort((target as AbortSignal).reason);

  #follow(source: AbortSignal): void {
    if (source.aborted) return void this.#own.abort(source.reason);
    this.#sources.push(source);
    sharedSignal(source).addEventListener("abort", this.#abort, { once: true });
  }
}
