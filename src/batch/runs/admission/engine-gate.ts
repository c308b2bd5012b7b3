import type { Clock } from "../../../lib/time/clock.js";
import { SharedWork } from "../../../lib/time/shared-work.js";

export interface EngineGateOptions {
  clock: Clock;
  /** Returns a number from 0 to less than 1. */
  random: () => number;
  /** Asks the engine something small; rejects if it does not work. */
  probe: (signal: AbortSignal) => Promise<void>;
  onPause?: ((pause: EnginePause) => void) | undefined;
  /** Called when a probe has succeeded. */
  onResume?: (() => void) | undefined;
  limits?: Partial<EngineGateLimits> | undefined;
}

export interface EngineGateLimits {
  /** Length of the time before now whose outcomes count. */
  windowMs: number;
  /** Fewer outcomes than these say nothing. */
  minOutcomes: number;
  firstPauseMs: number;
  longestPauseMs: number;
  startsPerSecond: number;
}

const defaultLimits: EngineGateLimits = {
  windowMs: 60_000,
  minOutcomes: 8,
  firstPauseMs: 30_000,
  longestPauseMs: 300_000,
  startsPerSecond: 10,
};

/** Why nothing starts at the moment. */
export interface EnginePause {
  forMs: number;
  failed: number;
  outcomes: number;
  /** Message of the probe, or of the last failure that speaks against the engine. */
  cause: string | null;
}

interface Outcome {
  at: number;
  isFault: boolean;
}

/**
 * Keeps work from an engine that fails: when more than half of the operations of the last time failed, nothing starts
 * until, after a pause, one probe succeeds. It also limits how many operations start in a second.
 */
export class EngineGate {
  readonly #options: EngineGateOptions;
  readonly #limits: EngineGateLimits;
  readonly #recovery = new SharedWork<void>();
  #outcomes: Outcome[] = [];
  #pause: { endsAt: number; probes: number } | null = null;
  #nextStartAt = Number.NEGATIVE_INFINITY;

  constructor(options: EngineGateOptions) {
    this.#options = options;
    this.#limits = { ...defaultLimits, ...options.limits };
  }

  get isPaused(): boolean {
    return this.#pause !== null;
  }

  /** Resolves when the next operation may start. An abort ends the wait. */
  async turn(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    signal.throwIfAborted();
    while (true) {
      // Timers run only as long as somebody waits.
      while (this.#pause !== null)
        await this.#recovery.join("recovery", (everybodyLeft) => this.#recover(everybodyLeft), signal);
      const waitMs = this.#nextStartAt - clock.now();
      if (waitMs <= 0) break;
      await clock.sleep(waitMs, signal);
    }
    this.#nextStartAt = clock.now() + 1000 / this.#limits.startsPerSecond;
  }

  /** Takes how an operation ended. `isFault`: it speaks against the engine, and not only against what it was asked for. */
  note({ isFault, cause }: { isFault: boolean; cause: string | null }): void {
    if (this.#pause !== null) return;
    const at = this.#options.clock.now();
    this.#outcomes.push({ at, isFault });
    this.#outcomes = this.#outcomes.filter((one) => at - one.at < this.#limits.windowMs);
    const { failed } = this.#counts();
    if (isFault && this.#outcomes.length >= this.#limits.minOutcomes && failed * 2 > this.#outcomes.length)
      this.#pauseFor(cause, 0);
  }

  #pauseFor(cause: string | null, probes: number): void {
    const { clock, random, onPause } = this.#options;
    const { firstPauseMs, longestPauseMs } = this.#limits;
    const wholeMs = Math.min(longestPauseMs, firstPauseMs * 2 ** probes);
    // Several runs on one engine do not all come back at the same time.
    const forMs = Math.round(wholeMs * (0.75 + random() / 4));
    this.#pause = { endsAt: clock.now() + forMs, probes };
    onPause?.({ forMs, ...this.#counts(), cause });
  }

  #counts(): { failed: number; outcomes: number } {
    return {
      failed: this.#outcomes.filter(({ isFault }) => isFault).length,
      outcomes: this.#outcomes.length,
    };
  }

  async #recover(signal: AbortSignal): Promise<void> {
    const { clock, probe, onResume } = this.#options;
    for (let pause = this.#pause; pause !== null; pause = this.#pause) {
      await clock.sleep(Math.max(0, pause.endsAt - clock.now()), signal);
      try {
        await probe(signal);
      } catch (error) {
        if (signal.aborted) throw error;
        this.#pauseFor(error instanceof Error ? error.message : String(error), pause.probes + 1);
        continue;
      }
      this.#pause = null;
      this.#outcomes = [];
      onResume?.();
    }
  }
}
