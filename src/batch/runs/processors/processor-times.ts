import type { Sandbox } from "../../../sandbox/index.js";
import { openedSandboxOf, threadWaits } from "../../../sandbox/index.js";
import { firstOf, readProcessorCounts } from "./kernel-counts.js";

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
/** Of /proc/stat, on every kernel that runs containers. */
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
    const limit = openedSandboxOf(this.#sandbox).plan.limits.nanoCpus / 1e9;
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
