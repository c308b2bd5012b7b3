import type { Sandbox } from "../../../sandbox/index.js";

/** Where a counter may be in a container, by the version of its control groups; version 1 has several names for a directory. */
export type CounterFiles = Readonly<Record<"1" | "2", readonly string[]>>;

const CPU: CounterFiles = {
  2: ["/sys/fs/cgroup/cpu.stat"],
  1: ["/sys/fs/cgroup/cpu,cpuacct/cpu.stat", "/sys/fs/cgroup/cpu/cpu.stat"],
};
/** Of version 1; version 2 has it in `cpu.stat`. */
const USAGE = ["/sys/fs/cgroup/cpu,cpuacct/cpuacct.usage", "/sys/fs/cgroup/cpuacct/cpuacct.usage"];

/** What a container's kernel has counted of it so far. Null for what it does not say. */
export interface ProcessorCounts {
  usedMs: number | null;
  /** Kept from its processors by its own limit. */
  throttledMs: number | null;
}

export async function readProcessorCounts(sandbox: Sandbox): Promise<ProcessorCounts> {
  const isSecond = versionOf(sandbox) === "2";
  const [cpu, early] = await Promise.all([
    readCounter(sandbox, CPU),
    isSecond ? null : firstOf(sandbox, USAGE),
  ]);
  const micros = field(cpu, "usage_usec");
  const usage = isSecond && micros === null ? await firstOf(sandbox, USAGE) : early;
  return {
    usedMs: scaled(micros, 1000) ?? scaled(asNumber(usage), 1e6),
    throttledMs: scaled(field(cpu, "throttled_usec"), 1000) ?? scaled(field(cpu, "throttled_time"), 1e6),
  };
}

/** Null where the kernel does not count it, and once the container has ended. */
export async function readCounter(sandbox: Sandbox, files: CounterFiles): Promise<string | null> {
  const version = versionOf(sandbox);
  // A runtime may show its containers another version than the engine has.
  return (
    (await firstOf(sandbox, files[version])) ?? (await firstOf(sandbox, files[version === "2" ? "1" : "2"]))
  );
}

function versionOf({ proof }: Sandbox): "1" | "2" {
  return proof.engine.cgroupVersion === "2" ? "2" : "1";
}

/** The first of these files that the kernel has. All are read at once, since each answer of the runner takes its time. */
export async function firstOf(sandbox: Sandbox, paths: readonly string[]): Promise<string | null> {
  const texts = await Promise.all(paths.map(async (path) => await textOf(sandbox, path)));
  return texts.find((text) => text !== null) ?? null;
}

async function textOf({ files }: Sandbox, path: string): Promise<string | null> {
  try {
    return (await files.read(path, { maxBytes: 64 * 1024 })).toString("utf8");
  } catch {
    // This kernel has it elsewhere, or not at all; an ended container has nothing.
    return null;
  }
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
