import type { Sandbox } from "../../sandbox/sandbox.js";
import type { AttemptResult } from "../results/attempt-result.js";

export type UsedResources = Pick<AttemptResult["resources"], "peakMemoryBytes" | "cpuMs" | "throttledMs">;

/** The files of cgroup v2 and of v1, in the container. */
const FILES = {
  peak: ["/sys/fs/cgroup/memory.peak", "/sys/fs/cgroup/memory/memory.max_usage_in_bytes"],
  cpu: ["/sys/fs/cgroup/cpu.stat", "/sys/fs/cgroup/cpu,cpuacct/cpu.stat", "/sys/fs/cgroup/cpu/cpu.stat"],
  usage: ["/sys/fs/cgroup/cpu,cpuacct/cpuacct.usage", "/sys/fs/cgroup/cpuacct/cpuacct.usage"],
};

/** What a container has used so far, as its kernel counts it. Null for what the kernel does not say. */
export async function readResources(sandbox: Sandbox): Promise<UsedResources> {
  const [peak, cpu] = await Promise.all([firstOf(sandbox, FILES.peak), firstOf(sandbox, FILES.cpu)]);
  const micros = field(cpu, "usage_usec");
  const nanos = micros === null ? asNumber(await firstOf(sandbox, FILES.usage)) : null;
  return {
    peakMemoryBytes: asNumber(peak),
    cpuMs: micros === null ? scaled(nanos, 1e6) : micros / 1000,
    throttledMs: scaled(field(cpu, "throttled_usec"), 1000) ?? scaled(field(cpu, "throttled_time"), 1e6),
  };
}

/** Of several containers, or of one that was started again: then the kernel counts from the beginning. */
export function usedTogether(one: UsedResources, other: UsedResources): UsedResources {
  const sum = (a: number | null, b: number | null) => (a === null ? b : a + (b ?? 0));
  return {
    peakMemoryBytes:
      one.peakMemoryBytes === null
        ? other.peakMemoryBytes
        : Math.max(one.peakMemoryBytes, other.peakMemoryBytes ?? 0),
    cpuMs: sum(one.cpuMs, other.cpuMs),
    throttledMs: sum(one.throttledMs, other.throttledMs),
  };
}

async function firstOf({ files }: Sandbox, paths: readonly string[]): Promise<string | null> {
  for (const path of paths) {
    try {
      return (await files.read(path, { maxBytes: 64 * 1024 })).toString("utf8");
    } catch {
      // This kernel has it elsewhere, or not at all; an ended container has nothing.
    }
  }
  return null;
}

function field(text: string | null, name: string): number | null {
  return asNumber(
    text
      ?.split("\n")
      .find((line) => line.startsWith(`${name} `))
      ?.slice(name.length) ?? null,
  );
}

function asNumber(text: string | null): number | null {
  const trimmed = text?.trim() ?? "";
  return /^[0-9]{1,15}$/.test(trimmed) ? Number(trimmed) : null;
}

function scaled(number: number | null, by: number): number | null {
  return number === null ? null : number / by;
}
