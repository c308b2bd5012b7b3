import type { Machine } from "./machine.js";

/** The most that an attempt may use of the machine. */
export interface Need {
  cpus: number;
  memoryBytes: number;
  diskBytes: number;
}

export interface AdmissionRules {
  /** The most attempts that run at once. */
  maxAtOnce: number;
  /** How many processors may be promised for each that exists: attempts mostly wait for their models. */
  cpuOvercommit: number;
  /** Left for everything else on the machine. */
  reservedMemoryBytes: number;
  reservedDiskBytes: number;
}

export const standardRules: Omit<AdmissionRules, "maxAtOnce"> = {
  cpuOvercommit: 4,
  reservedMemoryBytes: 512 * 1024 ** 2,
  reservedDiskBytes: 2 * 1024 ** 3,
};

/** An attempt that was admitted. */
export interface Admitted {
  need: Need;
  /** Whether the memory it was admitted for may not show in the machine's measured use yet. */
  isYoung: boolean;
}

export type Shortage =
  | { kind: "concurrency"; running: number }
  | { kind: "cpus" | "memory" | "disk"; needed: number; left: number };

/**
 * Why an attempt cannot start now; null if it can. If nothing runs, only the disk keeps one from starting: memory that
 * other programs use may never come back.
 */
export function findShortage(
  need: Need,
  { rules, machine, running }: { rules: AdmissionRules; machine: Machine; running: readonly Admitted[] },
): Shortage | null {
  if (machine.freeDiskBytes !== null) {
    const left = machine.freeDiskBytes - rules.reservedDiskBytes;
    if (need.diskBytes > left || left <= 0) return { kind: "disk", needed: need.diskBytes, left };
  }
  if (running.length === 0) return null;
  if (running.length >= rules.maxAtOnce) return { kind: "concurrency", running: running.length };

  const cpusLeft = machine.cpus * rules.cpuOvercommit - total(running, "cpus");
  if (need.cpus > cpusLeft) return { kind: "cpus", needed: need.cpus, left: cpusLeft };

  const memoryLeft = freeMemory(machine, running) - rules.reservedMemoryBytes;
  if (need.memoryBytes > memoryLeft) return { kind: "memory", needed: need.memoryBytes, left: memoryLeft };
  return null;
}

/** Resources that even an otherwise idle machine lacks for an attempt; null if the attempt can run. */
export function findExcess(need: Need, machine: Pick<Machine, "cpus" | "memoryBytes">): Shortage | null {
  if (need.cpus > machine.cpus) return { kind: "cpus", needed: need.cpus, left: machine.cpus };
  if (need.memoryBytes > machine.memoryBytes)
    return { kind: "memory", needed: need.memoryBytes, left: machine.memoryBytes };
  return null;
}

/** The smaller of what is promised to nobody, and what nobody uses or is about to use. */
function freeMemory(machine: Machine, running: readonly Admitted[]): number {
  const unpromised = machine.memoryBytes - total(running, "memoryBytes");
  if (machine.availableMemoryBytes === null) return unpromised;
  const young = running.filter(({ isYoung }) => isYoung);
  return Math.min(unpromised, machine.availableMemoryBytes - total(young, "memoryBytes"));
}

function total(running: readonly Admitted[], field: keyof Need): number {
  return running.reduce((sum, { need }) => sum + need[field], 0);
}
