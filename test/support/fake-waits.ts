import { syncBuiltinESMExports } from "node:module";
import timers from "node:timers/promises";
import { vi } from "vitest";

/**
 * As `vi.useFakeTimers`, and also for what waits with `setTimeout` of `node:timers/promises`, which vitest leaves as it is. Such a wait cannot be
 * ended by a signal here.
 */
export function fakeWaits(): Disposable {
  vi.useFakeTimers();
  const { setTimeout: real } = timers;
  const faked = (ms?: number, value?: unknown) => new Promise((resolve) => setTimeout(resolve, ms, value));
  timers.setTimeout = faked as typeof real;
  syncBuiltinESMExports();
  return {
    [Symbol.dispose]() {
      timers.setTimeout = real;
      syncBuiltinESMExports();
      vi.useRealTimers();
    },
  };
}
