import type { Sandbox } from "../../sandbox/sandbox.js";

/** The files of cgroup v2 and of v1, in the container. */
const FILES = {
  cpu: ["/sys/fs/cgroup/cpu.stat", "/sys/fs/cgroup/cpu,cpuacct/cpu.stat", "/sys/fs/cgroup/cpu/cpu.stat"],
  usage: ["/sys/fs/cgroup/cpu,cpuacct/cpuacct.usage", "/sys/fs/cgroup/cpuacct/cpuacct.usage"],
};

/** What a container's kernel has counted of it so far. Null for what it does not say. */
export interface ProcessorCounts {
  usedMs: number | null;
  /** Kept from its processors by its own limit. */
  throttledMs: number | null;
}

export async function readProcessorCounts(sandbox: Sandbox): Promise<ProcessorCounts> {
  const cpu = await firstOf(sandbox, FILES.cpu);
  const micros = field(cpu, "usage_usec");
  const nanos = micros === null ? asNumber(await firstOf(sandbox, FILES.usage)) : null;
  return {
    usedMs: micros === null ? scaled(nanos, 1e6) : micros / 1000,
    throttledMs: scaled(field(cpu, "throttled_usec"), 1000) ?? scaled(field(cpu, "throttled_time"), 1e6),
  };
}

/** The first of these files that the kernel has; null for none, and once the container has ended. */
export async function firstOf({ files }: Sandbox, paths: readonly string[]): Promise<string | null> {
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

export function asNumber(text: string | null): number | null {
  const trimmed = text?.trim() ?? "";
  return /^[0-9]{1,15}$/.test(trimmed) ? Number(trimmed) : null;
}

function scaled(number: number | null, by: number): number | null {
  return number === null ? null : number / by;
}
