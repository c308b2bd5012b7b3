import type { Sandbox } from "../../../sandbox/index.js";
import {
  asNumber,
  type CounterFiles,
  readCounter,
  readProcessorCounts,
} from "../processors/kernel-counts.js";
import type { AttemptResult } from "../results/attempt-result.js";

export type UsedResources = Pick<AttemptResult["resources"], "peakMemoryBytes" | "cpuMs" | "throttledMs">;

const PEAK: CounterFiles = {
  2: ["/sys/fs/cgroup/memory.peak"],
  1: ["/sys/fs/cgroup/memory/memory.max_usage_in_bytes"],
};

/** Resources that a container has used so far, as its kernel counts them. Null for each that the kernel does not report. */
export async function readResources(sandbox: Sandbox): Promise<UsedResources> {
  const [peak, processors] = await Promise.all([readCounter(sandbox, PEAK), readProcessorCounts(sandbox)]);
  return {
    peakMemoryBytes: asNumber(peak),
    cpuMs: processors.usedMs,
    throttledMs: processors.throttledMs,
  };
}

/** Adds up the use of several containers, or of one that was started again: then the kernel counts from the beginning. */
export function usedTogether(one: UsedResources, other: UsedResources): UsedResources {
  return {
    peakMemoryBytes:
      one.peakMemoryBytes === null
        ? other.peakMemoryBytes
        : Math.max(one.peakMemoryBytes, other.peakMemoryBytes ?? 0),
    cpuMs: sumOfKnown(one.cpuMs, other.cpuMs),
    throttledMs: sumOfKnown(one.throttledMs, other.throttledMs),
  };
}

/** Null if neither is known. */
export function sumOfKnown(one: number | null, other: number | null): number | null {
  return one === null ? other : one + (other ?? 0);
}
