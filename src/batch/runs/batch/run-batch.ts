import { BrigError } from "../../../errors.js";
import { readVersion } from "../../../version.js";
import type { Task } from "../../tasks/task.js";
import type { AttemptAdmission, BatchWait } from "../admission/attempt-admission.js";
import { type AttemptOutcome, outcomeOf } from "../results/attempt-outcome.js";
import type { AttemptResult } from "../results/attempt-result.js";
import { type AttemptPlace, attemptFolder, attemptKey, tryFolder } from "../results/run-files.js";
import { type AttemptSignals, type RunLimits, runSchedule, type WaitingAttempt } from "./attempt-schedule.js";
import type { BatchListener, BatchStop } from "./batch-events.js";
import {
  attemptLimits,
  type BatchFile,
  type BatchSettings,
  changesText,
  deservesRetry,
  type RetryPolicy,
  refuseEqualFolders,
  replacedTasks,
  type SettingDifference,
  settingDifferences,
  taskDifferences,
  workOfNextTry,
} from "./batch-settings.js";
import { RunStore } from "./run-store.js";
import { taskInFile } from "./select-tasks.js";

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
    tasks: tasks.map(taskInFile),
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

interface ResumeOptions {
  retries: RetryPolicy;
  /** Run attempts again that the infrastructure has ended for good, or that could not be graded at all. */
  retriesInfrastructure: boolean;
  /** Grade attempts whose agent is done but that have no score. */
  scoresUnscored: boolean;
}

/** State of a run as its folder shows it, and the work that is left. */
interface RunState {
  finished: AttemptOutcome[];
  waiting: WaitingAttempt[];
  /** Attempts that have ended but are missing in `results.jsonl`. */
  recovered: AttemptResult[];
  /** Whether lines have to be removed from `results.jsonl`: torn ones, and those of attempts that run again. */
  needsRewrite: boolean;
}

/** The attempts at tasks, the first at each task before the second at any. */
function plannedAttempts(tasks: readonly Task[], attempts: number): { task: Task; attempt: number }[] {
  const numbers = Array.from({ length: attempts }, (_, index) => index + 1);
  return numbers.flatMap((attempt) => tasks.map((task) => ({ task, attempt })));
}

/** Decides by `results.jsonl`, and reads the files of those attempts only that are missing in it. */
async function readRunState(
  store: RunStore,
  planned: readonly { task: Task; attempt: number }[],
  options: ResumeOptions,
): Promise<RunState> {
  const { outcomes, isDamaged } = await store.readOutcomes();
  const folders = await store.attemptFolders();
  const state: RunState = { finished: [], waiting: [], recovered: [], needsRewrite: isDamaged };
  for (const { task, attempt } of planned) {
    const place = { task: task.name, attempt };
    const outcome = outcomes.get(attemptKey(place));
    if (outcome === undefined) await addUnlisted({ task, attempt }, { store, folders, state, options });
    else if (addOutcome({ task, attempt }, outcome, { state, options }) === "again")
      state.needsRewrite = true;
  }
  return state;
}

/** An attempt with a line in `results.jsonl`. "again" if that line is not its last. */
function addOutcome(
  planned: { task: Task; attempt: number },
  outcome: AttemptOutcome,
  { state, options }: { state: RunState; options: ResumeOptions },
): "finished" | "again" {
  const waiting = furtherWork(planned, outcome, options);
  if (waiting === null) state.finished.push(outcome);
  else state.waiting.push(waiting);
  return waiting === null ? "finished" : "again";
}

interface Unlisted {
  store: RunStore;
  folders: ReadonlySet<string>;
  state: RunState;
  options: ResumeOptions;
}

/** An attempt without a line: it has not begun, is torn, or ended just before its line was written. */
async function addUnlisted(planned: { task: Task; attempt: number }, run: Unlisted): Promise<void> {
  const { store, folders, state, options } = run;
  const place = { task: planned.task.name, attempt: planned.attempt };
  const result = folders.has(attemptFolder(place)) ? await store.readResult(place) : null;
  if (result === null || result.status === "cancelled") {
    const tries = await earlierTries(place, { store, folders });
    state.waiting.push({ ...planned, work: "run", tries });
    return;
  }
  if (deservesRetry(result, options.retries))
    state.waiting.push({ ...planned, work: workOfNextTry(result), tries: withFailure(result) });
  else if (addOutcome(planned, outcomeOf(result), { state, options }) === "finished")
    state.recovered.push(result);
}

/** Further work that the user asks for on an ended attempt; null if the attempt is to stay as it is. */
function furtherWork(
  planned: { task: Task; attempt: number },
  outcome: AttemptOutcome,
  { retriesInfrastructure, scoresUnscored }: ResumeOptions,
): WaitingAttempt | null {
  if (outcome.status === "unscored" && scoresUnscored)
    return { ...planned, work: "grade", tries: outcome.tries };
  const hasEnded = outcome.status === "infrastructure" || outcome.failure?.class === "ungradable";
  return hasEnded && retriesInfrastructure ? { ...planned, work: "run", tries: withFailure(outcome) } : null;
}

/** The tries before a torn one, from the folder of the last that has ended. */
async function earlierTries(
  place: AttemptPlace,
  { store, folders }: Pick<Unlisted, "store" | "folders">,
): Promise<AttemptResult["tries"]> {
  let last = 0;
  while (folders.has(tryFolder(place, last + 1))) last++;
  const result = last === 0 ? null : await store.readResult(place, tryFolder(place, last));
  return result === null ? [] : withFailure(result);
}

type EndedTry = Pick<AttemptOutcome, "tries" | "startedAt" | "endedAt" | "failure">;

function withFailure({ tries, startedAt, endedAt, failure }: EndedTry): AttemptResult["tries"] {
  return failure === null ? tries : [...tries, { startedAt, endedAt, failure }];
}
