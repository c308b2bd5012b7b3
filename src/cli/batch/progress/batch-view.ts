import type { AttemptStage, BatchEvent, BatchStop, BatchWait } from "../../../batch/index.js";
import { attemptKey, meanReward, passes } from "../../../batch/index.js";
import { SteadyTime } from "../../../lib/time/estimate.js";

interface RunningAttempt {
  task: string;
  attempt: number;
  stage: AttemptStage | null;
  /** The number of this grading and the highest number there can be; set in the stage `confirm` only. */
  grading?: { number: number; atMost: number } | undefined;
  sinceMs: number;
}

/** Fewer say too little about the others. */
const LEAST_ENDED = 3;

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
  /** How long the attempts took that have ended in this run. */
  readonly #tookMs: number[] = [];
  /** The most attempts that ran at the same time. */
  #width = 1;
  readonly #left = new SteadyTime();
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
        this.#width = Math.max(this.#width, this.running.size);
        return;
      case "attempt-stage": {
        const attempt = this.running.get(attemptKey(event));
        if (attempt !== undefined) Object.assign(attempt, { stage: event.stage, grading: event.grading });
        return;
      }
      case "attempt-retried":
        this.running.delete(attemptKey(event));
        return;
      case "attempt-ended": {
        const attempt = this.running.get(attemptKey(event.result));
        this.running.delete(attemptKey(event.result));
        if (attempt !== undefined && event.result.status !== "cancelled")
          this.#tookMs.push(nowMs - attempt.sinceMs);
        this.#addResult(event.result);
        return;
      }
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

  /** Attempts that end per minute. Null before the first one has ended. */
  perMinute(nowMs: number): number | null {
    const elapsedMs = nowMs - this.#startedAtMs;
    return this.ended === 0 || elapsedMs <= 0 ? null : (this.ended / elapsedMs) * 60_000;
  }

  /**
   * Each attempt takes as long as the median of those that have ended, and as many run at once as have. Null before enough have
   * ended, while nothing can start, and if nothing will.
   */
  leftMs(nowMs: number): number | null {
    const isHalted = this.stop !== null || this.wait?.kind === "engine" || this.wait?.kind === "model";
    const each = isHalted || this.#tookMs.length < LEAST_ENDED ? null : median(this.#tookMs);
    const waiting = this.total - this.done - this.running.size;
    if (each === null || waiting + this.running.size <= 0) return null;
    const rests = [...this.running.values()].map(({ sinceMs }) => Math.max(0, each - (nowMs - sinceMs)));
    const work = rests.reduce((sum, rest) => sum + rest, 0) + waiting * each;
    return Math.max(work / this.#width, ...rests);
  }

  /** "about 4 min left"; empty while that is unknown. */
  leftText(nowMs: number): string {
    return this.#left.text(this.leftMs(nowMs), nowMs);
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

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const [upper = 0, lower = upper] = [sorted[middle], sorted[middle - 1]];
  return sorted.length % 2 === 1 ? upper : (lower + upper) / 2;
}
