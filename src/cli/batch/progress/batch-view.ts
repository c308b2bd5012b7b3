import type { AttemptStage, BatchEvent, BatchStop, BatchWait } from "../../../batch/index.js";
import { attemptKey, meanReward, passes } from "../../../batch/index.js";

interface RunningAttempt {
  task: string;
  attempt: number;
  stage: AttemptStage | null;
  /** The number of this grading and the highest number there can be; set in the stage `confirm` only. */
  grading?: { number: number; atMost: number } | undefined;
  sinceMs: number;
}

/** Everything about a run that is shown while it lasts. */
export class BatchView {
  total = 0;
  /** Attempts that earlier runs in the same folder have finished. */
  before = 0;
  ended = 0;
  passed = 0;
  scored = 0;
  costUsd = 0;
  readonly failures = new Map<string, number>();
  readonly running = new Map<string, RunningAttempt>();
  stop: BatchStop | null = null;
  isStopping = false;
  /** Why nothing starts; null while attempts do. */
  wait: BatchWait | null = null;
  #startedAtMs = 0;
  readonly #rewards = new Map<string, number[]>();

  /** `nowMs`: a clock that only grows. */
  take(event: BatchEvent, nowMs: number): void {
    switch (event.kind) {
      case "started":
        this.total = event.attempts;
        this.before = event.finished;
        this.#startedAtMs = nowMs;
        return;
      case "attempt-started":
        this.running.set(attemptKey(event), { ...event, stage: null, sinceMs: nowMs });
        return;
      case "attempt-stage": {
        const attempt = this.running.get(attemptKey(event));
        if (attempt !== undefined) Object.assign(attempt, { stage: event.stage, grading: event.grading });
        return;
      }
      case "attempt-retried":
        this.running.delete(attemptKey(event));
        return;
      case "attempt-ended":
        this.running.delete(attemptKey(event.result));
        this.#addResult(event.result);
        return;
      case "waiting":
        this.wait = event.reason;
        return;
      case "draining":
        this.wait = null;
        this.stop = event.reason;
        return;
      case "stopping":
        this.isStopping = true;
        return;
      case "ended":
        return;
      default:
        event satisfies never;
    }
  }

  get done(): number {
    return this.before + this.ended;
  }

  /** The mean reward of the attempts that have ended in this run. */
  get reward() {
    return meanReward(this.#rewards.values());
  }

  /** How many tasks the mean reward includes. */
  get tasks(): number {
    return this.#rewards.size;
  }

  /** Attempts that end per minute, and an estimate of the time left. Null before the first attempt has ended. */
  rate(nowMs: number): { perMinute: number; leftMs: number } | null {
    const elapsedMs = nowMs - this.#startedAtMs;
    if (this.ended === 0 || elapsedMs <= 0) return null;
    const left = this.total - this.done;
    return { perMinute: (this.ended / elapsedMs) * 60_000, leftMs: (left * elapsedMs) / this.ended };
  }

  longest(count: number): RunningAttempt[] {
    return [...this.running.values()].toSorted((a, b) => a.sinceMs - b.sinceMs).slice(0, count);
  }

  #addResult(result: (BatchEvent & { kind: "attempt-ended" })["result"]): void {
    this.costUsd += result.usage.costUsd ?? 0;
    if (result.status === "cancelled") return;
    this.ended++;
    if (result.status === "scored" && result.reward !== null) {
      this.scored++;
      if (passes(result)) this.passed++;
      this.#rewards.set(result.task, [...(this.#rewards.get(result.task) ?? []), result.reward]);
      return;
    }
    const name = result.failure?.class ?? result.status;
    this.failures.set(name, (this.failures.get(name) ?? 0) + 1);
  }
}
