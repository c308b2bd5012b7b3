import { pause } from "../../../lib/time/pause.js";
import type { Sandbox } from "../../../sandbox/index.js";
import { lostTimeMs } from "./lost-time.js";
import { ProcessorClock, type ProcessorTimes } from "./processor-times.js";

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
