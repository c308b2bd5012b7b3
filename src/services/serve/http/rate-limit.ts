/** How many are known at once that have come lately. */
const MAX_KNOWN = 10_000;
const MINUTE_MS = 60_000;

/** How often somebody may do something: so many times a minute on average, and as many at once after a quiet minute. */
export class RateLimit {
  readonly #now: () => number;
  /** When each may do it as often as at first again; those that have come last are last. */
  readonly #quietAt = new Map<string, number>();

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Counts it and returns 0, or returns after how many seconds it may be tried again. */
  take(who: string, timesPerMinute: number): number {
    const now = this.#now();
    const quietAt = Math.max(now, this.#quietAt.get(who) ?? now);
    const nextAt = quietAt + MINUTE_MS / timesPerMinute;
    if (nextAt > now + MINUTE_MS) return Math.max(1, Math.ceil((nextAt - now - MINUTE_MS) / 1000));
    this.#quietAt.delete(who);
    this.#quietAt.set(who, nextAt);
    for (const [known, at] of this.#quietAt) {
      if (at > now && this.#quietAt.size <= MAX_KNOWN) break;
      this.#quietAt.delete(known);
    }
    return 0;
  }

  get knownCount(): number {
    return this.#quietAt.size;
  }
}
