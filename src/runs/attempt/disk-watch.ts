import type { Engine } from "../../docker/engine-types.js";
import { pause } from "../../lib/time/pause.js";

/** As often as an agent needs to notice in time that it does something wrong, and a disk that it fills has room. */
const INTERVAL_MS = 5000;
/** The engine looks at every file that was written, which may take long: this share of the time, at most. */
const WORKING_SHARE = 0.05;

const MEBIBYTE = 1024 ** 2;

export interface DiskWatch {
  containerId: string;
  limitBytes: number;
  /** Called once, when more than the limit was written. */
  onExceeded(writtenBytes: number): void;
  signal: AbortSignal;
}

/**
 * Counts from time to time what a container has written, until the signal is aborted. What an engine does not say is not held
 * against the agent. Never rejects.
 */
export async function watchDisk(engine: Pick<Engine, "writtenBytes">, watch: DiskWatch): Promise<void> {
  const { containerId, limitBytes, signal } = watch;
  let waitMs = INTERVAL_MS;
  try {
    for (;;) {
      await pause(waitMs, signal);
      if (signal.aborted) return;
      const beganAt = performance.now();
      const written = await engine.writtenBytes(containerId, { signal }).catch(() => null);
      if (signal.aborted) return;
      if (written !== null && written > limitBytes) return watch.onExceeded(written);
      waitMs = Math.max(INTERVAL_MS, (performance.now() - beganAt) / WORKING_SHARE);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** Of the agent's container, or of that of the tests. */
export function describeExceeded(whose: string, { writtenBytes, limitBytes }: ExceededDisk): string {
  const [written, limit] = [writtenBytes, limitBytes].map((bytes) => Math.round(bytes / MEBIBYTE));
  return `${whose} container had written ${written} MiB, and the task allows ${limit} MiB`;
}

export interface ExceededDisk {
  writtenBytes: number;
  limitBytes: number;
}
