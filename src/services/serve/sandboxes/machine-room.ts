import type { Machine, MachineNeed, Shortage } from "../../../batch/index.js";
import { findExcess, findShortage, openMeter, standardRules } from "../../../batch/index.js";
import { formatBytes } from "../../../lib/bytes.js";
import type { Engine } from "../../../sandbox/index.js";
import { busy, Refusal } from "../http/refusal.js";

/** What one sandbox takes. */
export interface Need {
  /** Of the machine: what was asked for, or little where nobody has said how much. */
  cpus: number;
  memoryMb: number;
  /** The most that it can take: these count for its client. */
  limits: { cpus: number; memoryMb: number };
}

export interface TakenRoom {
  need: Need;
  /** As `performance.now()` counts. */
  since: number;
}

/** What the engine's machine has, of which sandboxes take a part. */
export interface MachineRoom {
  /** Error: a refusal with 429 for what the machine would not have if nothing else ran. */
  refuseTooMuch(need: Need): Promise<void>;
  /** Why there is no room at the moment; null if there is. */
  shortage(need: Need, taken: readonly TakenRoom[]): Promise<Refusal | null>;
}

/** After this time the memory of a sandbox shows in what the kernel says is available. */
const YOUNG_MS = 30_000;
const RETRY_SECONDS = 10;
const MEBIBYTE = 1024 ** 2;

/** Measures the engine's machine, as batches do. Sandboxes that are kept started count like those of clients. */
export function measuredRoom(engine: Engine, warm: { count: number; need: Need }): MachineRoom {
  let meter: Promise<() => Promise<Machine>> | null = null;
  const measure = async () => {
    // It is asked again after a failure.
    meter ??= openMeter(engine).catch((error: unknown) => {
      meter = null;
      throw error;
    });
    return await (await meter)();
  };
  const kept = new Array(warm.count).fill({ need: machineNeed(warm.need), isYoung: false });
  return {
    async refuseTooMuch(need) {
      const excess = findExcess(machineNeed(need), await measure());
      if (excess === null) return;
      throw new Refusal(`the machine is too small: ${described(excess, "it has")}`, {
        status: 429,
        code: "serve.busy",
        hint: "ask for smaller limits",
      });
    },
    async shortage(need, taken) {
      const now = performance.now();
      const shortage = findShortage(machineNeed(need), {
        rules: { ...standardRules, maxAtOnce: Number.POSITIVE_INFINITY },
        // A sandbox needs next to nothing of the disk, and the engine itself says which one is full.
        machine: { ...(await measure()), freeDiskBytes: null },
        running: [
          ...kept,
          ...taken.map((one) => ({ need: machineNeed(one.need), isYoung: now - one.since < YOUNG_MS })),
        ],
      });
      if (shortage === null) return null;
      return busy(`the machine has no room: ${described(shortage, "it has left")}`, {
        status: 429,
        retrySeconds: RETRY_SECONDS,
      });
    },
  };
}

function machineNeed({ cpus, memoryMb }: Need): MachineNeed {
  return { cpus, memoryBytes: memoryMb * MEBIBYTE, diskBytes: 0 };
}

function described(shortage: Shortage, has: string): string {
  switch (shortage.kind) {
    case "concurrency":
      return "too many sandboxes run";
    case "cpus":
      return `the sandbox may use ${shortage.needed} processors, and ${has} ${Math.max(0, shortage.left)}`;
    case "memory":
      return `the sandbox may use ${formatBytes(shortage.needed)} of memory, and ${has} ${formatBytes(Math.max(0, shortage.left))}`;
    case "disk":
      return "the engine's disk is nearly full";
    default:
      return shortage satisfies never;
  }
}
