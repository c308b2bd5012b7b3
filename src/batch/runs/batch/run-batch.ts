import { BrigError } from "../../../errors.js";
import { readVersion } from "../../../version.js";
import type { Task } from "../../tasks/task.js";
import type { AttemptAdmission, BatchWait } from "../admission/attempt-admission.js";
import { type AttemptOutcome, outcomeOf } from "../results/attempt-outcome.js";
import type { AttemptResult } from "../results/attempt-result.js";
import { type AttemptPlace, attemptKey } from "../results/run-files.js";
import { type AttemptSignals, runSchedule, type WaitingAttempt } from "./attempt-schedule.js";
import type { BatchListener, BatchStop } from "./batch-events.js";
import {
  attemptLimits,
  type BatchFile,
  type BatchSettings,
  replacedTasks,
  type SettingDifference,
  settingDifferences,
  taskDifferences,
} from "./batch-settings.js";
import { changesText } from "./changes-text.js";
import { refuseEqualFolders } from "./equal-folders.js";
import { plannedAttempts, type RunState, readRunState } from "./resume.js";
import type { RetryPolicy } from "./retries.js";
import type { RunLimits } from "./run-budget.js";
import { RunStore } from "./run-store.js";
import { tagsOf } from "./select-tasks.js";

/** One try at an attempt, as the batch hands it out. */
export interface AttemptOrder extends AttemptSignals {
  task: Task;
  /** Counts the attempts at this task from 1. */
  attempt: number;
  /** Exists and is empty. */
  folder: string;
  /** Earlier tries that the infrastructure ended; the result has them as its `tries`. */
  tries: AttemptResult["tries"];
}

/** Runs the attempts of a batch. */
export interface AttemptRunner {
  /** Resolves when `result.json` is durable. Throws only what ends the whole run. */
  run(order: AttemptOrder): Promise<AttemptResult>;
  /** Grades the artifacts that are kept in the folder, and writes `result.json` again. Default: it cannot. */
  grade?(order: AttemptOrder): Promise<AttemptResult>;
}

export interface BatchOptions {
  /** Made if it is missing. With the files of an earlier run of the same settings, that run goes on. */
  folder: string;
  tasks: readonly Task[];
  settings: BatchSettings;
  runner: AttemptRunner;
  /** Opens what says when an attempt may start. Default: at once. */
  admission?: ((onWait: (wait: BatchWait | null) => void) => AttemptAdmission) | undefined;
  /** Most attempts that run at once. */
  concurrency: number;
  retries: RetryPolicy;
  limits: RunLimits;
  failsFast: boolean;
  resume: BatchResumeOptions;
  /** The order in which attempts start. Default: the first at each task, then the second at each. */
  order?: ((waiting: readonly WaitingAttempt[]) => WaitingAttempt[]) | undefined;
  /** Shortest wait before the next try of an attempt, given the number of tries so far. */
  retryWaitMs: (triesSoFar: number) => number;
  now: () => Date;
  onEvent: BatchListener;
  /** Aborting it starts no more attempts. */
  drain: AbortSignal;
  /** Aborting it also cancels those that run. */
  signal: AbortSignal;
}

interface BatchResumeOptions {
  /** Takes what an earlier run with other settings gave out of the run, and runs it anew. */
  allowsChanges: boolean;
  retriesInfrastructure: boolean;
  scoresUnscored: boolean;
}

export interface BatchOutcome {
  batch: BatchFile;
  outcomes: AttemptOutcome[];
  /** Null if all attempts have ended. */
  stop: BatchStop | null;
}

/**
 * Runs the attempts that have not ended yet. Errors: `usage.invalid` for a folder that is not of this run,
 * `session.busy` for one in use, and what the runner throws.
 */
export async function runAttempts(options: BatchOptions): Promise<BatchOutcome> {
  const { folder, tasks, settings, resume, retries, onEvent } = options;
  refuseEqualFolders(tasks);
  const store = new RunStore(folder);
  using _lock = await store.lock();
  const batch = await openRun(store, options);
  const planned = plannedAttempts(tasks, settings.attempts);
  const scoresUnscored = resume.scoresUnscored && options.runner.grade !== undefined;
  const state = await readRunState(store, planned, { ...resume, scoresUnscored, retries });
  await repair(store, state, { planned });
  onEvent({
    kind: "started",
    folder,
    tasks: tasks.length,
    attempts: planned.length,
    finished: state.finished.length,
    concurrency: options.concurrency,
  });
  const { outcomes, stop } = await runWaiting(store, state, options);
  onEvent({ kind: "ended", stop });
  return { batch, outcomes, stop };
}

/** Writes `batch.json`, or refuses the folder of another run. */
async function openRun(store: RunStore, { tasks, settings, resume, now }: BatchOptions): Promise<BatchFile> {
  const before = await store.readBatch();
  const batch: BatchFile = {
    schemaVersion: 1,
    brigVersion: readVersion(),
    createdAt: before?.createdAt ?? now().toISOString(),
    settings,
    tasks: tasks.map((task) => {
      const { name, checksum, parts, format } = task;
      return { name, checksum, parts: { ...parts }, format, tags: tagsOf(task) };
    }),
  };
  if (before !== null) {
    const changed = changesOf(before, batch);
    if (changed.length === 0) return before;
    if (!resume.allowsChanges) throw otherRun(store.folder, changed);
    await supersedeChanged(store, before, batch);
  }
  await store.writeBatch(batch);
  return batch;
}

function changesOf(before: BatchFile, after: BatchFile): SettingDifference[] {
  return [
    ...settingDifferences(before.settings, after.settings),
    ...taskDifferences(before.tasks, after.tasks),
  ];
}

function otherRun(folder: string, changes: readonly SettingDifference[]): BrigError {
  return new BrigError(`${folder} is of a run with other tasks or settings:\n${changesText(changes)}`, {
    code: "usage.invalid",
    hint: "name another folder with -o, or give --allow-changed to run what has changed anew; its former results are set aside",
  });
}

/** Sets aside the attempts that other tasks or settings would not give. */
async function supersedeChanged(store: RunStore, before: BatchFile, after: BatchFile): Promise<void> {
  const settings = settingDifferences(before.settings, after.settings);
  const changesAll = settings.some(({ field }) => field !== "attempts");
  const tasks = new Set(replacedTasks(before.tasks, after.tasks));
  const isOld = ({ task, attempt }: AttemptPlace) =>
    changesAll || tasks.has(task) || attempt > after.settings.attempts;
  await store.supersede(before, isOld);
}

/** Brings `results.jsonl` in line with the attempts' own files. */
async function repair(
  store: RunStore,
  { finished, recovered, needsRewrite }: RunState,
  { planned }: { planned: readonly { task: Task; attempt: number }[] },
): Promise<void> {
  const missing = new Set(recovered.map(attemptKey));
  const places = new Set(planned.map(({ task, attempt }) => attemptKey({ task: task.name, attempt })));
  const listed = new Set(finished.map(attemptKey).filter((key) => places.has(key) && !missing.has(key)));
  if (needsRewrite) await store.keepResults((place) => listed.has(attemptKey(place)));
  if (recovered.length === 0) return;
  await using results = await store.openResults();
  for (const result of recovered) await results.append(result);
}

async function runWaiting(
  store: RunStore,
  { finished, waiting }: RunState,
  options: BatchOptions,
): Promise<Pick<BatchOutcome, "outcomes" | "stop">> {
  const { runner, order = (all) => [...all], admission, onEvent } = options;
  const outcomes = [...finished];
  await using results = await store.openResults();
  const stop = await runSchedule(order(waiting), {
    ...options,
    admission: admission?.((reason) => onEvent({ kind: "waiting", reason })),
    containerLimits: attemptLimits(options.settings),
    earlier: finished,
    run: async ({ task, attempt, work, tries }, signals) => {
      const place = { task: task.name, attempt };
      if (work === "grade" && runner.grade !== undefined) {
        const folder = store.attemptPath(place);
        return await runner.grade({ task, attempt, folder, tries, ...signals });
      }
      const folder = await store.prepareAttempt(place, { earlierTries: tries.length });
      return await runner.run({ task, attempt, folder, tries, ...signals });
    },
    keep: async (result) => {
      await results.append(result);
      outcomes.push(outcomeOf(result));
    },
  });
  return { outcomes, stop };
}
