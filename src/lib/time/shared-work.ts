import { beforeAbort } from "./before-abort.js";

type Work<T> = (signal: AbortSignal) => Promise<T>;

interface Running<T> {
  result: Promise<T>;
  waiting: number;
  everybodyLeft: AbortController;
}

/** Does each piece of work once at a time, for everybody who waits for it, and ends it when nobody does. */
export class SharedWork<T> {
  readonly #running = new Map<string, Running<T>>();

  /** Starts the work unless it is running under this key. An abort ends only this wait, with the signal's reason. */
  async join(key: string, work: Work<T>, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    const running = this.#running.get(key) ?? this.#start(key, work);
    running.waiting += 1;
    try {
      return await beforeAbort(running.result, signal);
    } finally {
      running.waiting -= 1;
      if (running.waiting === 0) this.#end(key, running);
    }
  }

  #start(key: string, work: Work<T>): Running<T> {
    const everybodyLeft = new AbortController();
    const running = { result: work(everybodyLeft.signal), waiting: 0, everybodyLeft };
    // If all have left, nobody listens to its end any more.
    running.result.catch(() => undefined);
    this.#running.set(key, running);
    return running;
  }

  /** Whoever comes now starts anew, instead of joining work that is about to end. */
  #end(key: string, running: Running<T>): void {
    if (this.#running.get(key) === running) this.#running.delete(key);
    running.everybodyLeft.abort(new DOMException("nobody waits for it any more", "AbortError"));
  }
}
