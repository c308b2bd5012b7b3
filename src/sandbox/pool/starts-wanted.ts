const [FIRST_PAUSE_MS, LONGEST_PAUSE_MS] = [1_000, 60_000];

export interface PoolState {
  size: number;
  ready: number;
  /** Callers that wait for a sandbox. */
  waiting: number;
  /** A caller waits for the pool to be full, or nobody has had a sandbox of it yet. */
  isFilling: boolean;
  /** A start has failed, and its pause is not over yet. */
  isResting: boolean;
  cores: number;
}

/**
 * The number of sandboxes that a pool starts at the same time. While callers wait, only theirs are started, which are ready sooner then.
 * Sandboxes that nobody waits for yet are started on half of the processors at most, so that the calls in other sandboxes stay
 * quick. A pool that is being filled starts all at once.
 */
export function startsWanted({ size, ready, waiting, isFilling, isResting, cores }: PoolState): number {
  const missing = isResting ? 0 : Math.max(0, size - ready);
  if (isFilling) return waiting + missing;
  return waiting > 0 ? waiting : Math.min(missing, Math.max(1, Math.floor(cores / 2)));
}

/** The wait after a start that failed. It doubles with each failure in a row. */
export function restMs(failuresInARow: number): number {
  return Math.min(FIRST_PAUSE_MS * 2 ** (failuresInARow - 1), LONGEST_PAUSE_MS);
}
