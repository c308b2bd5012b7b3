import { setTimeout as wait } from "node:timers/promises";

/** Resolves after so long; an abort rejects at once with the signal's reason. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  try {
    await wait(ms, undefined, { signal });
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  }
}
