import { BrigError } from "../../../errors.js";
import { formatBytes } from "../../../lib/bytes.js";
import type { Clock } from "../../../lib/time/clock.js";
import type { Engine } from "../../../sandbox/index.js";
import { freeSpace, isThisMachine, readMeminfo } from "../../../sandbox/index.js";

export interface AdmissionOptions {
  measure: () => Promise<Machine>;
  rules: AdmissionRules;
  clock: Clock;
  /** Called when the first in the queue has to wait, with each new reason. */
  onWait?: ((shortage: Shortage) => void) | undefined;
}

/** How often the machine is measured while an attempt waits. */
const measureEveryMs = 1000;
/** After this time an attempt's memory shows in what the kernel says is available. */
const youngMs = 30_000;

interface Waiting {
  need: Need;
  admit: (place: Disposable) => void;
  refuse: (reason: unknown) => void;
}

/**
 * Lets attempts start in the order in which they ask. A large one therefore waits until there is room for it, and
 * none that came later goes first.
 */
export class Admission {
  readonly #options: AdmissionOptions;
  readonly #queue: Waiting[] = [];
  readonly #running = new Set<{ need: Need; since: number }>();
  /** Aborted when somebody leaves or the queue's first changes, so that the next look comes at once. */
  #changed = new AbortController();
  #isAdmitting = false;
  #lastReason = "";

  constructor(options: AdmissionOptions) {
    this.#options = options;
  }

  get waiting(): number {
    return this.#queue.length;
  }

  /** Resolves when there is room. The place is free again when the result is disposed of. */
  async enter(need: Need, signal?: AbortSignal): Promise<Disposable> {
    signal?.throwIfAborted();
    return await new Promise((resolve, reject) => {
      const leave = () => {
        this.#queue.splice(this.#queue.indexOf(waiting), 1);
        this.#lookAgain();
        reject(signal?.reason);
      };
      const settled = <T>(settle: (value: T) => void) => {
        return (value: T) => {
          signal?.removeEventListener("abort", leave);
          settle(value);
        };
      };
      const waiting: Waiting = { need, admit: settled(resolve), refuse: settled(reject) };
      signal?.addEventListener("abort", leave, { once: true });
      this.#queue.push(waiting);
      if (!this.#isAdmitting) void this.#admitAll();
    });
  }

  /** Runs as long as somebody waits. */
  async #admitAll(): Promise<void> {
    this.#isAdmitting = true;
    for (let first = this.#queue[0]; first !== undefined; first = this.#queue[0]) {
      try {
        await this.#admitFirst();
      } catch (error) {
        const index = this.#queue.indexOf(first);
        if (index !== -1) this.#queue.splice(index, 1)[0]?.refuse(error);
      }
    }
    this.#isAdmitting = false;
  }

  async #admitFirst(): Promise<void> {
    const { measure, clock, rules } = this.#options;
    const { signal } = this.#changed;
    const machine = await measure();
    // Whoever was first may have left meanwhile.
    const first = this.#queue[0];
    if (first === undefined) return;
    const now = clock.now();
    const running = [...this.#running].map(({ need, since }) => ({ need, isYoung: now - since < youngMs }));
    const shortage = findShortage(first.need, { rules, machine, running });
    if (shortage === null) {
      this.#queue.shift();
      this.#lastReason = "";
      first.admit(this.#place(first.need));
      return;
    }
    this.#explain(shortage);
    await clock.sleep(measureEveryMs, signal).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
  }

  #place(need: Need): Disposable {
    const place = { need, since: this.#options.clock.now() };
    this.#running.add(place);
    return {
      [Symbol.dispose]: () => {
        if (this.#running.delete(place)) this.#lookAgain();
      },
    };
  }

  #lookAgain(): void {
    this.#changed.abort();
    this.#changed = new AbortController();
  }

  #explain(shortage: Shortage): void {
    if (shortage.kind === this.#lastReason) return;
    this.#lastReason = shortage.kind;
    this.#options.onWait?.(shortage);
  }
}

/** Error: `usage.invalid` with all tasks that ask for more than the machine has. */
export function requireRoom(wanted: readonly { task: string; need: Need }[], machine: Machine): void {
  const lines = wanted.flatMap(({ task, need }) => {
    const excess = findExcess(need, machine);
    return excess === null ? [] : [`  ${task} ${describeExcess(excess)}`];
  });
  if (lines.length === 0) return;
  throw new BrigError(["the engine's machine is too small for these tasks:", ...lines].join("\n"), {
    code: "usage.invalid",
    hint: "leave them out, or run them on a larger machine",
  });
}

function describeExcess(excess: Shortage): string {
  if (excess.kind === "concurrency") return "has no room";
  if (excess.kind === "cpus") return `asks for ${excess.needed} processors, and there are ${excess.left}`;
  return `asks for ${formatBytes(excess.needed)} of ${excess.kind}, and there are ${formatBytes(excess.left)}`;
}

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

/** Resources of the machine that the engine runs on, and what is left of them. */
export interface Machine {
  cpus: number;
  memoryBytes: number;
  /** Memory that programs can use without swapping; null if the engine is on another machine. */
  availableMemoryBytes: number | null;
  /** Free space on the file system with the engine's images and containers; null if the engine is on another machine. */
  freeDiskBytes: number | null;
}

/** Asks the kernel, if the engine is on this machine, else only the engine. */
export async function measureMachine(engine: Engine): Promise<Machine> {
  return await (await openMeter(engine))();
}

/** The same for whoever measures often: what never changes is asked for once. */
export async function openMeter(engine: Engine): Promise<() => Promise<Machine>> {
  const { cpus, memoryBytes, dockerRootDir } = await engine.info();
  const isHere = await isLocal(engine);
  return async () => {
    if (!isHere) return { cpus, memoryBytes, availableMemoryBytes: null, freeDiskBytes: null };
    const [meminfo, space] = await Promise.all([readMeminfo(), freeSpace(dockerRootDir)]);
    const availableMemoryBytes = meminfo.get("MemAvailable") ?? null;
    return { cpus, memoryBytes, availableMemoryBytes, freeDiskBytes: space?.bytes ?? null };
  };
}

/** Whether the kernel of this process is the engine's too. */
export async function isLocal(engine: Engine): Promise<boolean> {
  return engine.endpoint.startsWith("unix://") && (await isThisMachine(engine.endpoint, await engine.info()));
}
