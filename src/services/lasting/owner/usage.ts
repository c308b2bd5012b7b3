import { setTimeout as sleep } from "node:timers/promises";
import { isBrigError } from "../../../errors.js";
import type { Sandbox, SandboxFiles } from "../../../sandbox/index.js";
import { planOf } from "../../../sandbox/index.js";

/** What a sandbox uses at the moment. Null for what the kernel does not say in there, as in gVisor. */
export interface Usage {
  /** 100 is one processor. */
  cpuPercent: number | null;
  memoryBytes: number | null;
  memoryLimitBytes: number;
  pids: number | null;
  pidsLimit: number;
}

/** Where the two versions of cgroups have the figures, with the name of the one that is meant where there are several in the file. */
const FILES = {
  cpuMicroseconds: [["cpu.stat", "usage_usec"]],
  cpuNanoseconds: [["cpuacct/cpuacct.usage", null]],
  memoryBytes: [
    ["memory.current", null],
    ["memory/memory.usage_in_bytes", null],
  ],
  pids: [
    ["pids.current", null],
    ["pids/pids.current", null],
  ],
} as const;

const SAMPLE_MS = 500;

/** Looks twice, half a second apart. */
export async function usageOf(sandbox: Sandbox, signal: AbortSignal): Promise<Usage> {
  const { files } = sandbox;
  const begun = performance.now();
  const before = await cpuMs(files, signal);
  await sleep(SAMPLE_MS, undefined, { signal });
  const after = await cpuMs(files, signal);
  const tookMs = performance.now() - begun;
  const { memoryBytes, pids } = planOf(sandbox).limits;
  const cpuPercent = before === null || after === null ? null : (100 * (after - before)) / tookMs;
  return {
    cpuPercent: cpuPercent === null ? null : Math.round(10 * cpuPercent) / 10,
    memoryBytes: await figure(files, FILES.memoryBytes, signal),
    memoryLimitBytes: memoryBytes,
    pids: await figure(files, FILES.pids, signal),
    pidsLimit: pids,
  };
}

async function cpuMs(files: SandboxFiles, signal: AbortSignal): Promise<number | null> {
  const micro = await figure(files, FILES.cpuMicroseconds, signal);
  if (micro !== null) return micro / 1000;
  const nano = await figure(files, FILES.cpuNanoseconds, signal);
  return nano === null ? null : nano / 1_000_000;
}

async function figure(
  files: SandboxFiles,
  places: readonly (readonly [string, string | null])[],
  signal: AbortSignal,
): Promise<number | null> {
  for (const [file, key] of places) {
    const text = await textOf(files, `/sys/fs/cgroup/${file}`, signal);
    const pattern = key === null ? /^([0-9]+)/ : new RegExp(`^${key} ([0-9]+)$`, "m");
    const found = pattern.exec(text ?? "")?.[1];
    if (found !== undefined) return Number(found);
  }
  return null;
}

/** Null if there is no such file. */
async function textOf(files: SandboxFiles, path: string, signal: AbortSignal): Promise<string | null> {
  try {
    return (await files.read(path, { maxBytes: 64 * 1024, signal })).toString();
  } catch (error) {
    if (isBrigError(error) && error.code.startsWith("file.")) return null;
    throw error;
  }
}
