import { TimeLimit } from "../../../lib/time/time-limit.js";
import type { Task } from "../../tasks/task.js";
import type { AdmittedAttempt, AttemptAdmission } from "../admission/attempt-admission.js";
import type { ContainerLimits, OnStage } from "../attempt/attempt.js";
import { type AttemptOutcome, passes } from "../results/attempt-outcome.js";
import type { AttemptResult } from "../results/attempt-result.js";
import { attemptKey } from "../results/run-files.js";
import type { BatchListener, BatchStop } from "./batch-events.js";
import { deservesRetry, type RetryPolicy, workOfNextTry } from "./batch-settings.js";

/** An attempt that waits for its turn. */
export interface WaitingAttempt {
  task: Task;
  attempt: number;
  /** Runs the agent, or only grades the artifacts that an earlier run has kept. */
  work: "run" | "grade";
  /** Earlier tries that the infrastructure ended, or kept from their grades. */
  tries: AttemptResult["tries"];
}

export interface AttemptSignals {
  /** Aborting cancels the attempt. */
  signal: AbortSignal;
  onStage: OnStage;
}

export interface ScheduleOptions {
  concurrency: number;
  retries: RetryPolicy;
  /** Shortest wait before the next try of an attempt, given the number of tries so far. */
  retryWaitMs: (triesSoFar: number) => number;
  limits: RunLimits;
  /** Start no more attempts after one that has no score or does not pass. */
  failsFast: boolean;
  /** Earlier attempts that count towards the limits already. */
  earlier: Iterable<AttemptOutcome>;
  /** Says when a try may start. Default: at once. */
  admission?: AttemptAdmission | undefined;
  /** The most that each attempt may use. Default: what its task asks for. */
  containerLimits?: ContainerLimits | undefined;
  /** Runs one try. Resolves when its result is durable. */
  run: (waiting: WaitingAttempt, signals: AttemptSignals) => Promise<AttemptResult>;
  /** Takes a result that is the attempt's last. */
  keep: (result: AttemptResult) => Promise<void>;
  onEvent: BatchListener;
  /** Aborting it starts no more attempts. */
  drain: AbortSignal;
  /** Aborting it also cancels those that run. */
  signal: AbortSignal;
}

/** Runs attempts in their order, so many at a time. Resolves to why it ended early; null if all have ended. */
export async function runSchedule(
  waiting: readonly WaitingAttempt[],
  options: ScheduleOptions,
): Promise<BatchStop | null> {
  const schedule = new Schedule(waiting, options);
  const interrupt = () => schedule.stop({ kind: "interrupted" });
  const announce = () => schedule.announceStop();
  using time = new TimeLimit(options.limits.maxTimeMs ?? null);
  const over = new AbortController();
  const onAbort = (signal: AbortSignal, listener: () => void) => {
    if (signal.aborted) listener();
    else signal.addEventListener("abort", listener, { once: true, signal: over.signal });
  };
  onAbort(options.drain, interrupt);
  onAbort(options.signal, interrupt);
  onAbort(options.signal, announce);
  onAbort(time.signal, () => schedule.stop({ kind: "limit", limit: "time" }));
  return await schedule.toEnd().finally(() => over.abort());
}

const freeAdmission: AttemptAdmission = { enter: async () => ({ ended: () => undefined }) };

interface Delayed {
  waiting: WaitingAttempt;
  dueAt: number;
}

class Schedule {
  readonly #options: ScheduleOptions;
  readonly #budget: RunBudget;
  readonly #waiting: WaitingAttempt[];
  /** Further tries, which wait a while. */
  #delayed: Delayed[] = [];
  /** Attempts whose agent's use is in the budget already. A grade does not add to it. */
  readonly #charged = new WeakSet<WaitingAttempt>();
  readonly #running = new Set<string>();
  /** Whether an attempt waits until it may start. It is not shown as running. */
  #isEntering = false;
  /** Aborted when the waiting attempt is not to start any more. */
  readonly #closed = new AbortController();
  #stop: BatchStop | null = null;
  #fault: { error: unknown } | null = null;
  #wake: () => void = () => undefined;

  constructor(waiting: readonly WaitingAttempt[], options: ScheduleOptions) {
    this.#waiting = waiting.toReversed();
    this.#options = options;
    this.#budget = new RunBudget(options.limits, options.earlier);
  }

  stop(reason: BatchStop): void {
    if (this.#stop !== null || this.#isDone) return;
    this.#stop = reason;
    this.#closed.abort();
    this.#options.onEvent({ kind: "draining", reason, running: this.#running.size });
    this.#wake();
  }

  announceStop(): void {
    if (this.#running.size > 0) this.#options.onEvent({ kind: "stopping", running: this.#running.size });
  }

  /** Error: that of `run` or `keep`, after all other attempts that run have ended. */
  async toEnd(): Promise<BatchStop | null> {
    for (;;) {
      const changed = new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#startWhatFits();
      if (!this.#isBusy && (this.#isStopping || this.#isDone)) break;
      const timer = this.#wakeWhenDue();
      await changed;
      clearTimeout(timer);
    }
    if (this.#fault !== null) throw this.#fault.error;
    return this.#stop;
  }

  get #isStopping(): boolean {
    return this.#stop !== null || this.#fault !== null;
  }

  get #isBusy(): boolean {
    return this.#running.size > 0 || this.#isEntering;
  }

  get #isDone(): boolean {
    return !this.#isBusy && this.#waiting.length === 0 && this.#delayed.length === 0;
  }

  #startWhatFits(): void {
    while (!this.#isStopping && !this.#isEntering && this.#running.size < this.#options.concurrency) {
      const exceeded = this.#isDone ? null : this.#budget.exceeded();
      if (exceeded !== null) {
        this.stop(exceeded);
        return;
      }
      const next = this.#takeNext();
      if (next === null) return;
      void this.#enter(next);
    }
  }

  async #enter(waiting: WaitingAttempt): Promise<void> {
    this.#isEntering = true;
    let admitted: AdmittedAttempt | null = null;
    try {
      const { admission = freeAdmission, containerLimits } = this.#options;
      admitted = await admission.enter(waiting.task, this.#closed.signal, containerLimits);
    } catch (error) {
      if (!this.#closed.signal.aborted) this.#fail(error);
    }
    this.#isEntering = false;
    if (admitted === null) return this.#wake();
    // Others may have ended the run while it waited.
    if (this.#isStopping) {
      admitted.ended(null);
      return this.#wake();
    }
    const ended = this.#runTry(waiting);
    this.#wake();
    admitted.ended(await ended);
    this.#wake();
  }

  #fail(error: unknown): void {
    this.#fault ??= { error };
    this.#closed.abort();
  }

  /** Tries that are due come first, so that an attempt that has begun ends soon. */
  #takeNext(): WaitingAttempt | null {
    const now = performance.now();
    const due = this.#delayed.find(({ dueAt }) => dueAt <= now);
    if (due === undefined) return this.#waiting.pop() ?? null;
    this.#delayed = this.#delayed.filter((one) => one !== due);
    return due.waiting;
  }

  /** Null if there is no result. */
  async #runTry(waiting: WaitingAttempt): Promise<AttemptResult | null> {
    const { task, attempt, tries } = waiting;
    const { onEvent, run, signal } = this.#options;
    const place = { task: task.name, attempt };
    this.#running.add(attemptKey(place));
    onEvent({ kind: "attempt-started", ...place, try: tries.length + 1 });
    try {
      const onStage: OnStage = (stage, grading) =>
        onEvent({ kind: "attempt-stage", ...place, stage, grading });
      const result = await run(waiting, { signal, onStage });
      await this.#take(result, waiting);
      return result;
    } catch (error) {
      this.#fail(error);
      return null;
    } finally {
      this.#running.delete(attemptKey(place));
    }
  }

  async #take(result: AttemptResult, waiting: WaitingAttempt): Promise<void> {
    const { keep, onEvent, retries, retryWaitMs, failsFast } = this.#options;
    if (!this.#charged.has(waiting)) this.#budget.add(result.usage);
    const { task, attempt, failure, startedAt, endedAt } = result;
    if (failure !== null && deservesRetry(result, retries)) {
      const tries = [...result.tries, { startedAt, endedAt, failure }];
      const dueAt = performance.now() + retryWaitMs(tries.length);
      const next: WaitingAttempt = { ...waiting, tries, work: workOfNextTry(result) };
      if (next.work === "grade") this.#charged.add(next);
      this.#delayed.push({ waiting: next, dueAt });
      onEvent({ kind: "attempt-retried", task, attempt, try: tries.length, failure });
      return;
    }
    if (result.status !== "cancelled") await keep(result);
    onEvent({ kind: "attempt-ended", result });
    if (failsFast && result.status !== "cancelled" && !passes(result))
      this.stop({ kind: "failed", task, attempt });
  }

  /** The timer of the next further try, if there is room for it. */
  #wakeWhenDue(): NodeJS.Timeout | undefined {
    if (this.#delayed.length === 0 || this.#running.size >= this.#options.concurrency) return undefined;
    const next = Math.min(...this.#delayed.map(({ dueAt }) => dueAt));
    return setTimeout(() => this.#wake(), Math.max(0, Math.ceil(next - performance.now())));
  }
}

/** Limits of a whole run. Undefined for none. */
export interface RunLimits {
  maxCostUsd?: number | undefined;
  /** Input and output. */
  maxTokens?: number | undefined;
  maxTimeMs?: number | undefined;
}

/** Adds up what the attempts of a run have used, those of earlier runs in the same folder included. */
class RunBudget {
  readonly #limits: RunLimits;
  #costUsd = 0;
  #tokens = 0;

  constructor(limits: RunLimits, earlier: Iterable<AttemptOutcome>) {
    this.#limits = limits;
    for (const { usage } of earlier) this.add(usage);
  }

  add({ costUsd, inputTokens, outputTokens }: AttemptOutcome["usage"]): void {
    this.#costUsd += costUsd ?? 0;
    this.#tokens += inputTokens + outputTokens;
  }

  /** The limit that has been reached; null for none. */
  exceeded(): (BatchStop & { kind: "limit" }) | null {
    const { maxCostUsd, maxTokens } = this.#limits;
    if (maxCostUsd !== undefined && this.#costUsd >= maxCostUsd) return { kind: "limit", limit: "cost" };
    if (maxTokens !== undefined && this.#tokens >= maxTokens) return { kind: "limit", limit: "tokens" };
    return null;
  }
}
