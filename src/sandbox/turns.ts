import { availableParallelism } from "node:os";
import { Gate } from "../lib/time/gate.js";
import { pause } from "../lib/time/pause.js";

/** An engine starts no more containers in a second for being asked for all at once: then the first is as late as the last. */
const AT_ONCE_FOR_EACH_CORE = 2;

/** An engine that does not answer must not make whoever closes wait for all who close before. */
const LONGEST_TURN_MS = 1_000;

/** One gate for each engine address on which sandboxes are being started or closed, since callers may connect to one engine separately. */
const gates = new Map<string, Gate>();

export interface StartLimit {
  /** How many of this process may start at a time on that engine. */
  maxStartsAtOnce?: number | undefined;
  signal?: AbortSignal | undefined;
}

/** Starts a sandbox when it is its turn on this engine. */
export async function inTurn<T>(
  endpoint: string,
  { maxStartsAtOnce = AT_ONCE_FOR_EACH_CORE * availableParallelism(), signal }: StartLimit,
  start: () => Promise<T>,
): Promise<T> {
  return await pass(`start ${endpoint}`, start, { width: Math.max(1, maxStartsAtOnce), signal });
}

/**
 * Closes a sandbox when it is its turn. Many that end at once would keep this process from the processors for a quarter of a second,
 * and none would be gone earlier.
 */
export async function closeInTurn<T>(endpoint: string, close: () => Promise<T>): Promise<T> {
  const turn = async () => {
    const closing = close();
    const isOver = new AbortController();
    const longest = pause(LONGEST_TURN_MS, isOver.signal).catch(() => undefined);
    await Promise.race([closing.catch(() => undefined), longest]);
    isOver.abort();
    // Not the promise itself: that would be waited for here.
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
