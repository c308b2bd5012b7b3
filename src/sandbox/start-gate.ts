import { availableParallelism } from "node:os";
import { Gate } from "../lib/gate.js";

/** An engine starts no more containers in a second for being asked for all at once: then the first is as late as the last. */
const STARTS_FOR_EACH_CORE = 2;

/** One gate for each engine address on which sandboxes are being started, since callers may connect to one engine separately. */
const gates = new Map<string, Gate>();

export interface StartLimit {
  /** How many of this process may start at a time on that engine. */
  maxStartsAtOnce?: number | undefined;
  signal?: AbortSignal | undefined;
}

/** Starts a sandbox when it is its turn on this engine. */
export async function inTurn<T>(
  endpoint: string,
  { maxStartsAtOnce = STARTS_FOR_EACH_CORE * availableParallelism(), signal }: StartLimit,
  start: () => Promise<T>,
): Promise<T> {
  const gate = gates.get(endpoint) ?? new Gate();
  gates.set(endpoint, gate);
  try {
    return await gate.pass(start, { width: Math.max(1, maxStartsAtOnce), signal });
  } finally {
    if (gate.isIdle) gates.delete(endpoint);
  }
}
