const STEP_MS = 1000;

export interface LivedTimer {
  cancel(): void;
}

/**
 * Calls back once this process has run for so long. Time in which it stood still does not count: what came meanwhile, while
 * it was stopped or its machine slept, has not been read yet, and nothing can be judged before. Keeps no process alive.
 */
export function afterLivedTime(ms: number, callback: () => void): LivedTimer {
  let timer: NodeJS.Timeout;
  const wait = (leftMs: number) => {
    const stepMs = Math.min(leftMs, STEP_MS);
    const beganAt = performance.now();
    timer = setTimeout(() => {
      const stoodStill = performance.now() - beganAt > stepMs + STEP_MS;
      const nextMs = stoodStill ? leftMs : leftMs - stepMs;
      if (nextMs > 0) wait(nextMs);
      else callback();
    }, stepMs);
    timer.unref();
  };
  wait(ms);
  return { cancel: () => clearTimeout(timer) };
}
