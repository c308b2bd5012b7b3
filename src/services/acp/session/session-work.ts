import { AnySignal } from "../../../lib/time/any-signal.js";
import { beforeAbort } from "../../../lib/time/before-abort.js";
import { TimeLimit } from "../../../lib/time/time-limit.js";
import { invalidRequest } from "../rpc-error.js";

/** Time that `close` waits for a prompt or a change to end. */
const SETTLE_MS = 5000;

/**
 * Does what a session is asked to do one at a time. Changes wait for each other; during a prompt everything
 * else is refused.
 */
export class SessionWork {
  /** Ends the running prompt; null if none is running. */
  #stop: AbortController | null = null;
  /** Settles when everything that was asked for has ended. Never rejects. */
  #last: Promise<unknown> = Promise.resolve();
  #isClosed = false;
  #lastUsed = performance.now();

  /** Whether a prompt is running. */
  get isBusy(): boolean {
    return this.#stop !== null;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** When the last prompt ended, on the clock of `performance.now()`. */
  get lastUsed(): number {
    return this.#lastUsed;
  }

  /** Runs the action after the changes before it. Errors: -32600 during a prompt, and after `close`. */
  async change<Result>(action: () => Promise<Result>): Promise<Result> {
    this.#refuseIfBusy();
    return await this.#afterTheLast(action);
  }

  /**
   * Runs the action, whose signal aborts with the request's or by `stop`. Errors: -32600 during a prompt, and
   * after `close`.
   */
  async prompt<Result>(
    action: (signal: AbortSignal) => Promise<Result>,
    request: AbortSignal,
  ): Promise<Result> {
    this.#refuseIfBusy();
    const stop = new AbortController();
    this.#stop = stop;
    using either = new AnySignal([request, stop.signal]);
    try {
      return await this.#afterTheLast(() => action(either.signal));
    } finally {
      this.#stop = null;
      this.#lastUsed = performance.now();
    }
  }

  stop(reason: unknown): void {
    this.#stop?.abort(reason);
  }

  /**
   * Stops the prompt and refuses everything new. Resolves when what is running has ended, but after five
   * seconds at the latest.
   */
  async close(reason: unknown): Promise<void> {
    this.#isClosed = true;
    this.stop(reason);
    using limit = new TimeLimit(SETTLE_MS);
    await beforeAbort(this.#last, limit.signal).catch(() => undefined);
  }

  async #afterTheLast<Result>(action: () => Promise<Result>): Promise<Result> {
    const doing = this.#last.then(async () => {
      this.#refuseIfClosed();
      return await action();
    });
    this.#last = doing.catch(() => undefined);
    return await doing;
  }

  #refuseIfBusy(): void {
    this.#refuseIfClosed();
    if (this.#stop !== null)
      throw invalidRequest("the session is busy: cancel its prompt, or wait until it has ended");
  }

  #refuseIfClosed(): void {
    if (this.#isClosed) throw invalidRequest("the session is closed");
  }
}
