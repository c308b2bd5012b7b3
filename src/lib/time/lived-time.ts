const STEP_MS = 1000;

export interface LivedTimer {
  cancel(): void;
}

/**
 * Calls back after this much running time. Time in which the process was stopped or the machine slept does
 * not count: what arrived meanwhile has not been read yet. Does not keep the process alive.
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

/** Gives the promise's result, or rejects with `reason` after this much running time. */
export async function withinLivedTime<T>(promise: Promise<T>, ms: number, reason: Error): Promise<T> {
  let timer: LivedTimer | undefined;
  const over = new Promise<never>((_, reject) => {
    timer = afterLivedTime(ms, () => reject(reason));
  });
  try {
    return await Promise.race([promise, over]);
  } finally {
    timer?.cancel();
  }
}
