import type { ProcessorTimes } from "./processor-times.js";

/**
 * How much of the time between two readings a container lost because others held its processors. It wanted the time that
 * it used and the time for which it waited, but never more than its limit allows, so waiting for its own threads or because of its
 * limit does not count; nor does more than what others really used. What it lacked of it is lost in parallel, as often
 * as it has work for several processors.
 */
export function lostTimeMs(before: ProcessorTimes, after: ProcessorTimes): number {
  const { processors } = after;
  const elapsed = after.atMs - before.atMs;
  const used = after.usedMs - before.usedMs;
  const waited = after.waitedMs - before.waitedMs;
  const usedByOthers = after.machineMs - before.machineMs - used;
  if (!(elapsed > 0) || used < 0 || waited < 0) return 0;
  const wanted = Math.min(used + waited, processors * elapsed);
  const lacked = Math.max(0, Math.min(wanted - used, usedByOthers));
  const atOnce = Math.max(wanted / elapsed, Math.min(1, processors));
  return Math.min(elapsed, lacked / atOnce);
}
