import { setTimeout as wait } from "node:timers/promises";

/** A timer with a longer time would fire at once. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** An abort rejects at once with the signal's reason. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  try {
    await wait(ms, undefined, { signal });
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  }
}
