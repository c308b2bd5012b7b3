import { availableParallelism } from "node:os";
import { Gate } from "../lib/time/gate.js";
import { pause } from "../lib/time/pause.js";

/** More at once would only make the first start as slow as the last: the engine is at its limit. */
const AT_ONCE_FOR_EACH_CORE = 2;

/** The time after which the next sandbox may close too, so that an engine that does not answer blocks nobody. */
const LONGEST_TURN_MS = 1_000;

/** The gates by direction and engine address, since a program may connect to an engine several times. */
const gates = new Map<string, Gate>();

export interface StartLimit {
  /** The number of sandboxes that this process may start at a time on the engine. Default: twice the cores. */
  maxStartsAtOnce?: number | undefined;
  signal?: AbortSignal | undefined;
}

/** Starts a sandbox once fewer than the limit are being started on this engine. */
export async function queueStart<T>(
  endpoint: string,
  { maxStartsAtOnce = AT_ONCE_FOR_EACH_CORE * availableParallelism(), signal }: StartLimit,
  start: () => Promise<T>,
): Promise<T> {
  return await pass(`start ${endpoint}`, start, { width: Math.max(1, maxStartsAtOnce), signal });
}

/**
 * Closes a sandbox once few others are being closed on this engine. Many containers that end at once would
 * keep this process off the processors for a quarter of a second, and none would be gone sooner.
 */
export async function queueClose<T>(endpoint: string, close: () => Promise<T>): Promise<T> {
  const turn = async () => {
    const closing = close();
    const isOver = new AbortController();
    const longest = pause(LONGEST_TURN_MS, isOver.signal).catch(() => undefined);
    await Promise.race([closing.catch(() => undefined), longest]);
    isOver.abort();
    // An object, because returning the promise itself would await it here.
    return { closing };
  };
  const width = AT_ONCE_FOR_EACH_CORE * availableParallelism();
  return await (await pass(`close ${endpoint}`, turn, { width })).closing;
}

async function pass<T>(
  name: string,
  run: () => Promise<T>,
  limit: { width: number; signal?: AbortSignal | undefined },
): Promise<T> {
  const gate = gates.get(name) ?? new Gate();
  gates.set(name, gate);
  try {
    return await gate.pass(run, limit);
  } finally {
    if (gate.isIdle) gates.delete(name);
  }
}
