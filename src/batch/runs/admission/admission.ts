import { BrigError } from "../../../errors.js";
import { formatBytes } from "../../../lib/bytes.js";
import type { Clock } from "../../../lib/time/clock.js";
import { type AdmissionRules, findExcess, findShortage, type Need, type Shortage } from "./decide.js";
import type { Machine } from "./machine.js";

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
