import { sharedSignal } from "./shared-signal.js";

/**
 * Aborts with the first of several signals, and its reason, until it is disposed of. Unlike `AbortSignal.any`
 * it keeps its sources alive: a time limit that is garbage-collected never fires.
 */
export class AnySignal implements Disposable {
  readonly #own = new AbortController();
  readonly #sources: AbortSignal[] = [];
  /** What follows this one. Undefined until something does. */
  #followers: Set<AnySignal> | undefined;

  constructor(sources: readonly (AbortSignal | undefined)[]) {
    sharedSignal(this.#own.signal);
    made.set(this.#own.signal, this);
    for (const source of sources) if (source !== undefined) this.#follow(source);
  }

  get signal(): AbortSignal {
    return this.#own.signal;
  }

  /** Aborts by itself. */
  abort(reason: unknown): void {
    this.#own.abort(reason);
    const followers = this.#followers ?? [];
    this.#followers = undefined;
    for (const follower of followers) follower.abort(reason);
  }

  [Symbol.dispose](): void {
    for (const source of this.#sources.splice(0)) {
      const any = made.get(source);
      if (any === undefined) leave(source, this);
      else any.#followers?.delete(this);
    }
  }

  #follow(source: AbortSignal): void {
    if (source.aborted) return void this.abort(source.reason);
    this.#sources.push(source);
    const any = made.get(source);
    if (any === undefined) join(source, this);
    else {
      any.#followers ??= new Set();
      any.#followers.add(this);
    }
  }
}

/** By its signal, so that one of them follows another without an event. */
const made = new WeakMap<AbortSignal, AnySignal>();

interface Followed {
  followers: Set<AnySignal>;
  listener: () => void;
}

/**
 * Signals with all that follow each: one listener does for them, because adding a listener compares it with all that
 * there are, and each of 500 calls of a service follows the signal that ends the service.
 */
const followed = new WeakMap<AbortSignal, Followed>();

function join(source: AbortSignal, follower: AnySignal): void {
  const known = followed.get(source);
  if (known !== undefined) return void known.followers.add(follower);
  const followers = new Set([follower]);
  const listener = () => {
    followed.delete(source);
    for (const one of followers) one.abort(source.reason);
  };
  followed.set(source, { followers, listener });
  sharedSignal(source).addEventListener("abort", listener, { once: true });
}

function leave(source: AbortSignal, follower: AnySignal): void {
  const known = followed.get(source);
  if (known === undefined) return;
  known.followers.delete(follower);
  if (known.followers.size > 0) return;
  followed.delete(source);
  source.removeEventListener("abort", known.listener);
}
