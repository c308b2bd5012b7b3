import { sharedSignal } from "./shared-signal.js";

/** One for all: an error made at each end would hold what the functions on the stack hold, such as the body of a request. */
const OVER = new Error("the wait is over");

/** Gives the promise's result, or rejects with the reason of the signal as soon as that is aborted. */
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
    over.abort(OVER);
  }
}
