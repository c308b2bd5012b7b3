import { setTimeout as sleep } from "node:timers/promises";
import { isBrigError } from "../../../errors.js";
import { TimeLimit } from "../../../lib/time/time-limit.js";
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
  return {
    cpuPercent: percent(before, after, tookMs),
    memoryBytes: await figure(files, FILES.memoryBytes, signal),
    memoryLimitBytes: memoryBytes,
    pids: await figure(files, FILES.pids, signal),
    pidsLimit: pids,
  };
}

/** How long a figure is good enough for somebody who looks again. */
const FRESH_MS = 1500;
/** A sandbox whose runner does not answer is asked no longer. */
const LONGEST_LOOK_MS = 5000;

/** The figures of one sandbox for somebody who looks at it again and again, and never waits for them. */
export class UsageWatch {
  readonly #sandbox: Sandbox;
  #sample: { at: number; cpuMs: number | null } | null = null;
  #shown: Pick<Usage, "cpuPercent" | "memoryBytes"> | null = null;
  #isLooking = false;

  constructor(sandbox: Sandbox) {
    this.#sandbox = sandbox;
  }

  /** What the latest look has found, null before the first; looks again meanwhile if that is old. */
  latest(): Pick<Usage, "cpuPercent" | "memoryBytes"> | null {
    const isFresh = this.#sample !== null && performance.now() - this.#sample.at < FRESH_MS;
    if (!isFresh && !this.#isLooking) void this.#look();
    return this.#shown;
  }

  async #look(): Promise<void> {
    const { files } = this.#sandbox;
    this.#isLooking = true;
    using limit = new TimeLimit(LONGEST_LOOK_MS);
    try {
      const before = this.#sample;
      const now = { at: performance.now(), cpuMs: await cpuMs(files, limit.signal) };
      const memoryBytes = await figure(files, FILES.memoryBytes, limit.signal);
      this.#sample = now;
      const cpuPercent = before === null ? null : percent(before.cpuMs, now.cpuMs, now.at - before.at);
      this.#shown = { cpuPercent, memoryBytes };
    } catch {
      // It is ending, or does not answer: there are no figures of it.
      this.#shown = null;
    } finally {
      this.#isLooking = false;
    }
  }
}

function percent(beforeMs: number | null, afterMs: number | null, tookMs: number): number | null {
  if (beforeMs === null || afterMs === null) return null;
  return Math.round((1000 * (afterMs - beforeMs)) / tookMs) / 10;
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
