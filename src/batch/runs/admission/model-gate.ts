import { beforeAbort } from "../../../lib/time/before-abort.js";
import type { Clock } from "../../../lib/time/clock.js";

export interface ModelGateOptions {
  clock: Clock;
  /** Returns a number from 0 to less than 1. */
  random: () => number;
  /** Called when nothing starts any more, and with each next try. */
  onPause?: ((pause: ModelPause) => void) | undefined;
  /** Called when the endpoint has answered again. */
  onResume?: (() => void) | undefined;
}

/** Why nothing starts at the moment. */
export interface ModelPause {
  /** How many attempts in a row failed because of the endpoint. */
  failed: number;
  /** Time until one attempt tries the endpoint again; 0 if one is trying it now. */
  forMs: number;
  /** Message of the last failure. */
  cause: string;
}

/** What an ended attempt shows about the endpoint. "unknown": it never asked the endpoint, or was cancelled. */
export type ModelOutcome = { kind: "answered" | "unknown" } | { kind: "failed"; cause: string };

/** Leave to start one attempt. Its end has to be told. */
export interface ModelTurn {
  ended(outcome: ModelOutcome): void;
}

/** This many failures in a row are no accident of single attempts. */
const FAILED_IN_A_ROW = 5;
const FIRST_PAUSE_MS = 30_000;
const LONGEST_PAUSE_MS = 300_000;

/**
 * Keeps attempts from a model's endpoint that fails for all of them, as with a wrong key or in an outage: they would use up
 * their tries within seconds. After a pause one attempt starts, and its end decides whether the others may. There is
 * no cheaper way to ask: at many endpoints the requests that cost nothing do not need the key either.
 */
export class ModelGate {
  readonly #options: ModelGateOptions;
  #failed = 0;
  #pause: { endsAt: number; number: number; cause: string } | null = null;
  #trial: Trial | null = null;

  constructor(options: ModelGateOptions) {
    this.#options = options;
  }

  /** Resolves when the next attempt may start. An abort ends the wait. */
  async turn(signal: AbortSignal): Promise<ModelTurn> {
    const { clock } = this.#options;
    for (let pause = this.#pause; pause !== null; pause = this.#pause) {
      signal.throwIfAborted();
      const waitMs = pause.endsAt - clock.now();
      if (this.#trial !== null) await beforeAbort(this.#trial.ended, signal);
      else if (waitMs > 0) await clock.sleep(waitMs, signal);
      else return this.#startTrial(pause.cause);
    }
    return {
      ended: (outcome) => {
        // Attempts that started before a pause say nothing about the time since.
        if (this.#pause === null) this.#note(outcome);
      },
    };
  }

  #startTrial(cause: string): ModelTurn {
    let end: () => void = () => undefined;
    const trial: Trial = {
      ended: new Promise((resolve) => {
        end = resolve;
      }),
    };
    this.#trial = trial;
    this.#options.onPause?.({ failed: this.#failed, forMs: 0, cause });
    return {
      ended: (outcome) => {
        if (this.#trial !== trial) return;
        this.#trial = null;
        this.#note(outcome);
        end();
      },
    };
  }

  #note(outcome: ModelOutcome): void {
    if (outcome.kind === "failed") this.#fail(outcome.cause);
    if (outcome.kind === "answered") this.#resume();
  }

  #fail(cause: string): void {
    const { clock, random, onPause } = this.#options;
    this.#failed++;
    if (this.#failed < FAILED_IN_A_ROW) return;
    const number = (this.#pause?.number ?? 0) + 1;
    const wholeMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (number - 1));
    // Several runs against one endpoint do not all come back at the same time.
    const forMs = Math.round(wholeMs * (0.75 + random() / 4));
    this.#pause = { endsAt: clock.now() + forMs, number, cause };
    onPause?.({ failed: this.#failed, forMs, cause });
  }

  #resume(): void {
    this.#failed = 0;
    if (this.#pause === null) return;
    this.#pause = null;
    this.#options.onResume?.();
  }
}

/** One attempt that tries the endpoint, while the others wait for its end. */
interface Trial {
  ended: Promise<void>;
}
