import { pause } from "../../../lib/time/pause.js";
import type { Engine, Sandbox } from "../../../sandbox/index.js";
import { holeBytes } from "../../../sandbox/index.js";

/** Often enough that an agent notices in time that it does something wrong, and that a disk that it fills still has room. */
const INTERVAL_MS = 5000;
/** Largest share of the time spent on measuring: the engine looks at every file that was written, which may take long. */
const WORKING_SHARE = 0.05;

const MEBIBYTE = 1024 ** 2;

type CountingEngine = Pick<Engine, "writtenBytes" | "containerChanges">;

export interface DiskWatch {
  sandbox: Sandbox;
  limitBytes: number;
  /** Called once, when more than the limit was written. */
  onExceeded(writtenBytes: number): void;
  signal: AbortSignal;
}

/**
 * Counts from time to time what a container has written, until the signal is aborted. What an engine does not say is not held
 * against the agent. Never rejects.
 */
export async function watchDisk(engine: CountingEngine, watch: DiskWatch): Promise<void> {
  const { limitBytes, signal } = watch;
  let waitMs = INTERVAL_MS;
  try {
    for (;;) {
      await pause(waitMs, signal);
      if (signal.aborted) return;
      const beganAt = performance.now();
      const isOver = ((await occupiedBytes(engine, watch)) ?? 0) > limitBytes;
      // A file that was renamed or removed while it was looked at is counted rightly the second time.
      const written = isOver ? await occupiedBytes(engine, watch) : null;
      if (signal.aborted) return;
      if (written !== null && written > limitBytes) return watch.onExceeded(written);
      waitMs = Math.max(INTERVAL_MS, (performance.now() - beganAt) / WORKING_SHARE);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/**
 * Disk space taken by the files that a container wrote; null if the engine does not say. The engine counts sparse files
 * with their holes, so where the sum is more than the limit the holes are taken off, as far as they are known.
 */
export async function occupiedBytes(
  engine: CountingEngine,
  {
    sandbox,
    limitBytes,
    signal,
  }: Pick<DiskWatch, "sandbox" | "limitBytes"> & { signal?: AbortSignal | undefined },
): Promise<number | null> {
  const { containerId } = sandbox;
  const written = await engine.writtenBytes(containerId, { signal }).catch(() => null);
  if (written === null || written <= limitBytes) return written;
  try {
    const changes = await engine.containerChanges(containerId, { signal });
    const files = new Set(changes.flatMap(({ kind, path }) => (kind === "deleted" ? [] : path)));
    return Math.max(0, written - (await holeBytes(sandbox, files, { signal })));
  } catch {
    return written;
  }
}

/** `whose` is "the agent's" or "the tests'". */
export function describeExceeded(whose: string, { writtenBytes, limitBytes }: ExceededDisk): string {
  const [written, limit] = [writtenBytes, limitBytes].map((bytes) => Math.round(bytes / MEBIBYTE));
  return `${whose} container had written ${written} MiB, and the task allows ${limit} MiB`;
}

export interface ExceededDisk {
  writtenBytes: number;
  limitBytes: number;
}
