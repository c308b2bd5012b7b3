import type { EgressAttempt, Sandbox } from "../../../sandbox/index.js";
import { asSentError, type SentError } from "../wire/sent-error.js";

/** Older ones are forgotten. A client asks after each of its commands. */
const KEPT_ATTEMPTS = 5000;
const KEPT_PATH_CHARS = 1024;

/** What programs of a sandbox try to reach, for the sessions whose commands they belong to. */
export class EgressFeed {
  #attempts: EgressAttempt[] = [];
  /** How many there were before these. */
  #forgotten = 0;
  /** The first one that was sent, and how many attempts there were by then. */
  #canary: { error: SentError; at: number } | null = null;

  constructor(sandbox: Sandbox) {
    sandbox.watchEgress((attempt) => this.#add(attempt), {
      onCanarySent: (error) =>
        void error.then((sent) => {
          this.#canary ??= { error: asSentError(sent), at: this.count };
        }),
    });
  }

  /** How many there have been. */
  get count(): number {
    return this.#forgotten + this.#attempts.length;
  }

  /** The attempts from this number on that were made for calls whose names begin so, and the number to go on with. */
  after(
    number: number,
    prefix: string,
  ): { attempts: EgressAttempt[]; next: number; canary: SentError | null } {
    const later = this.#attempts.slice(Math.max(0, number - this.#forgotten));
    return {
      attempts: later.filter(({ owner }) => owner?.callId?.startsWith(prefix) === true),
      next: this.count,
      canary: this.#canary !== null && this.#canary.at >= number ? this.#canary.error : null,
    };
  }

  #add(attempt: EgressAttempt): void {
    this.#attempts.push({ ...attempt, path: attempt.path?.slice(0, KEPT_PATH_CHARS) ?? null });
    if (this.#attempts.length < 2 * KEPT_ATTEMPTS) return;
    this.#forgotten += this.#attempts.length - KEPT_ATTEMPTS;
    this.#attempts = this.#attempts.slice(-KEPT_ATTEMPTS);
  }
}
