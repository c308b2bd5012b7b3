import { pause } from "../../lib/time/pause.js";
import type { Sandbox } from "../../sandbox/index.js";
import { planOf, threadWaits } from "../../sandbox/index.js";

/** How long work in a container may take. */
export interface TimeAllowed {
  /** Null for no limit. */
  limitMs: number | null;
  /** By how much the limit is extended at most. */
  maxExtensionMs: number;
}

/** `extension`: how far the limit is extended at most, as a share of it. */
export function timeAllowed(limitSec: number | null, extension = 0): TimeAllowed {
  return {
    limitMs: limitSec === null ? null : limitSec * 1000,
    maxExtensionMs: (limitSec ?? 0) * 1000 * extension,
  };
}

/** What work that has ended took. */
export interface TimeTaken {
  durationMs: number;
  /** How much of it was beyond the limit. */
  extendedMs: number;
  /** How much of it was lost because others held the processors; null where the kernel does not count that. */
  waitedForCpuMs: number | null;
}

/** Work that ends so soon is not measured. */
const FIRST_READING_MS = 200;
const INTERVAL_MS = 1000;
/** A container that does not answer must not get time by that. */
const ANSWER_MS = 1000;

/** A time limit for work in a container. It can be extended by the time for which others kept the container from its processors. */
export class ExtendedLimit implements Disposable {
  readonly #over = new AbortController();
  readonly #ended = new AbortController();
  readonly #beganAt = performance.now();
  readonly #allowed: TimeAllowed;
  readonly #reason: unknown;
  readonly #clock: ProcessorClock;
  #reading: Promise<void> | null = null;
  #last: ProcessorTimes | null = null;
  #lostMs = 0;
  #isCounted = false;

  /** Begins at once. `reason`: that of the abort. */
  constructor(sandbox: Sandbox, { allowed, reason }: { allowed: TimeAllowed; reason: unknown }) {
    this.#clock = new ProcessorClock(sandbox);
    this.#allowed = allowed;
    this.#reason = reason;
    void this.#watch();
  }

  /** Aborted when the time is over. */
  get signal(): AbortSignal {
    return this.#over.signal;
  }

  get isOver(): boolean {
    return this.#over.signal.aborted;
  }

  /** Ends the measurement. To be called while the container still runs. */
  async end(): Promise<TimeTaken> {
    const elapsedMs = performance.now() - this.#beganAt;
    this[Symbol.dispose]();
    if (this.#last !== null) await this.#read();
    const { limitMs } = this.#allowed;
    const durationMs = limitMs === null ? elapsedMs : Math.min(elapsedMs, limitMs + this.#extensionMs());
    return {
      durationMs,
      extendedMs: limitMs === null ? 0 : Math.max(0, durationMs - limitMs),
      waitedForCpuMs: this.#isCounted ? Math.min(this.#lostMs, durationMs) : null,
    };
  }

  [Symbol.dispose](): void {
    this.#ended.abort();
  }

  async #watch(): Promise<void> {
    const { signal } = this.#ended;
    try {
      await pause(Math.min(FIRST_READING_MS, this.#leftMs()), signal);
      for (;;) {
        await this.#read();
        const leftMs = this.#leftMs();
        if (signal.aborted) return;
        if (leftMs <= 0) return this.#over.abort(this.#reason);
        await pause(Math.min(leftMs, INTERVAL_MS), signal);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  #leftMs(): number {
    const { limitMs } = this.#allowed;
    if (limitMs === null) return Number.POSITIVE_INFINITY;
    return this.#beganAt + limitMs + this.#extensionMs() - performance.now();
  }

  #extensionMs(): number {
    return Math.min(this.#lostMs, this.#allowed.maxExtensionMs);
  }

  /** Resolves after some time even if the container does not answer. */
  async #read(): Promise<void> {
    this.#reading ??= this.#count().finally(() => {
      this.#reading = null;
    });
    const answered = new AbortController();
    const late = pause(ANSWER_MS, answered.signal).catch(() => undefined);
    await Promise.race([this.#reading, late]);
    answered.abort();
  }

  /** Never rejects: whoever works in the container notices that it has ended. */
  async #count(): Promise<void> {
    const now = await this.#clock.read().catch(() => null);
    if (now === null) return;
    this.#isCounted = true;
    if (this.#last !== null) this.#lostMs += lostTimeMs(this.#last, now);
    this.#last = now;
  }
}

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

/** What was counted up to some moment. Only differences mean something. */
export interface ProcessorTimes {
  atMs: number;
  /** Processor time that the container used. */
  usedMs: number;
  /** How long its programs waited for a processor, for whatever reason. Of threads that wait at the same time, the sum, or more than none. */
  waitedMs: number;
  /** Processor time that everything on the machine used, the container included. */
  machineMs: number;
  /** How many processors the container may use at a time. May be a fraction. */
  processors: number;
}

const PRESSURE = "/sys/fs/cgroup/cpu.pressure";
/** The unit of the times in /proc/stat, the same on every kernel that runs containers. */
const TICKS_PER_SECOND = 100;

/** Reads a container's times. Those of threads are added up from one reading to the next. */
export class ProcessorClock {
  readonly #sandbox: Sandbox;
  #threads: ReadonlyMap<number, number> = new Map();
  #waitedMs = 0;

  constructor(sandbox: Sandbox) {
    this.#sandbox = sandbox;
  }

  /** Null where the kernel does not count them. Errors: those of every method of a sandbox. */
  async read(): Promise<ProcessorTimes | null> {
    const [counts, stat, waitedMs] = await Promise.all([
      readProcessorCounts(this.#sandbox),
      firstOf(this.#sandbox, ["/proc/stat"]),
      this.#readWaited(),
    ]);
    const machine = parseStat(stat ?? "");
    if (counts.usedMs === null || waitedMs === null || machine === null) return null;
    const limit = planOf(this.#sandbox).limits.nanoCpus / 1e9;
    return {
      atMs: performance.now(),
      usedMs: counts.usedMs,
      waitedMs,
      machineMs: machine.usedMs,
      processors: Math.min(limit, machine.processors),
    };
  }

  /** Cgroup v2 also counts processes that have ended; elsewhere what they waited since the last reading is lost. */
  async #readWaited(): Promise<number | null> {
    const pressure = parsePressure((await firstOf(this.#sandbox, [PRESSURE])) ?? "");
    if (pressure !== null) return pressure;
    const threads = await threadWaits(this.#sandbox);
    if (threads === null) return null;
    for (const [thread, waitedMs] of threads)
      this.#waitedMs += sinceLast(this.#threads.get(thread), waitedMs);
    this.#threads = threads;
    return this.#waitedMs;
  }
}

/** A thread that has waited less than before is another one of the same number. */
function sinceLast(before: number | undefined, now: number): number {
  return before === undefined || now < before ? now : now - before;
}

/** The time for which at least one process waited, as cgroup v2 says it. */
export function parsePressure(text: string): number | null {
  const [, micros] = /^some .*\btotal=([0-9]{1,15})$/m.exec(text) ?? [];
  return micros === undefined ? null : Number(micros) / 1000;
}

/** How long the processors of a machine were in use, and how many they are. */
export function parseStat(text: string): { usedMs: number; processors: number } | null {
  const [, all] = /^cpu +([0-9]{1,15}(?: [0-9]{1,15})*)$/m.exec(text) ?? [];
  const processors = text.match(/^cpu[0-9]/gm)?.length ?? 0;
  // The time of guests is contained in `user` and `nice`.
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = (all ?? "")
    .split(" ")
    .map(Number);
  if (all === undefined || processors === 0) return null;
  const usedMs = ((user + nice + system + irq + softirq + steal) * 1000) / TICKS_PER_SECOND;
  return { usedMs, processors };
}

/** Where a counter may be in a container, by the version of its control groups; version 1 has several names for a directory. */
export type CounterFiles = Readonly<Record<"1" | "2", readonly string[]>>;

const CPU: CounterFiles = {
  2: ["/sys/fs/cgroup/cpu.stat"],
  1: ["/sys/fs/cgroup/cpu,cpuacct/cpu.stat", "/sys/fs/cgroup/cpu/cpu.stat"],
};
/** The files that have the time used under cgroup version 1. Version 2 has it in `cpu.stat`. */
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
async function firstOf(sandbox: Sandbox, paths: readonly string[]): Promise<string | null> {
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
