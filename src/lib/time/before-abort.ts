import { sharedSignal } from "./shared-signal.js";

/** Waits for the promise. An abort rejects at once with the signal's reason. Without a signal it only waits. */
export async function beforeAbort<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return await promise;
  const over = new AbortController();
  const aborted = new Promise<never>((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    sharedSignal(signal).addEventListener("abort", () => reject(signal.reason), {
      once: true,
      signal: over.signal,
    });
  });
  try {
    return await Promise.race([aborted, promise]);
  } finally {
    over.abort();
  }
}
