import { stat } from "node:fs/promises";
import { join } from "node:path";
import { BrigError } from "../../errors.js";
import type { Task } from "../tasks/task.js";
import { MANIFEST_FILE } from "./artifacts/artifact-manifest.js";
import { writeResult } from "./attempt/attempt.js";
import { runSchedule, type WaitingAttempt } from "./batch/attempt-schedule.js";
import type { BatchListener, BatchStop } from "./batch/batch-events.js";
import {
  type BatchFile,
  changesText,
  retryPolicy,
  retryWaitMs,
  taskDifferences,
} from "./batch/batch-settings.js";
import type { AttemptRunner } from "./batch/run-batch.js";
import { type Run, RunStore, requireRun } from "./batch/run-store.js";
import { taskInFile } from "./batch/select-tasks.js";
import { stepFolder } from "./grading/run-tests.js";
import { type AttemptOutcome, outcomeOf } from "./results/attempt-outcome.js";
import type { AttemptResult } from "./results/attempt-result.js";
import { attemptKey } from "./results/run-files.js";

export interface RegradeOptions {
  folder: string;
  /** The tasks as they are now. Attempts at other tasks of the run keep their grades. */
  tasks: readonly Task[];
  grade: NonNullable<AttemptRunner["grade"]>;
  concurrency: number;
  /** Grade also attempts at tasks whose instruction or environment has changed since. */
  allowsChanges: boolean;
  onEvent: BatchListener;
  /** Aborting it starts no more. */
  drain: AbortSignal;
  /** Aborting it also cancels those that run. */
  signal: AbortSignal;
}

export interface Regraded extends Run {
  before: Run;
  /** Outcomes of the attempts that were graded again. */
  graded: AttemptOutcome[];
  /** The tasks whose attempts keep their grades, because their tests need the agent's container. */
  left: string[];
  /** The folder with the former grades. */
  former: string;
  stop: BatchStop | null;
}

/**
 * Grades attempts again, all that have a score or lack only that. The former grades are kept apart first, and from
 * then on an attempt has no score until it has its new one: so the grades of different tests are never counted together,
 * wherever this is interrupted. Errors: `usage.invalid` before anything is changed, `session.busy`, and what
 * grading throws.
 */
export async function regradeRun(options: RegradeOptions): Promise<Regraded> {
  const { folder, tasks, allowsChanges, onEvent } = options;
  await requireRun(folder);
  const store = new RunStore(folder);
  using _lock = await store.lock();
  const batch = await requireRun(folder);
  const gradable = gradableTasks(tasks, batch);
  const now = withTasks(batch, gradable);
  if (!allowsChanges) refuseOtherWork(batch, now);
  const { outcomes } = await store.readOutcomes();
  const waiting = await withWork(store, attemptsToGrade(batch, { outcomes, tasks: gradable }), outcomes);
  await refuseUngradable(store, waiting);
  const keys = new Set(waiting.map(({ task, attempt }) => attemptKey({ task: task.name, attempt })));
  const former = await store.keepCopy(batch);
  await removeGrades(store, waiting, keys);
  await store.writeBatch(now);
  onEvent({
    kind: "started",
    folder,
    tasks: tasks.length,
    attempts: waiting.length,
    finished: 0,
    concurrency: options.concurrency,
  });
  const { graded, stop } = await gradeAll(store, waiting, options);
  onEvent({ kind: "ended", stop });
  const before = { batch, outcomes: [...outcomes.values()] };
  const kept = before.outcomes.filter((outcome) => !keys.has(attemptKey(outcome)));
  const left = tasks.filter((task) => !gradable.includes(task)).map(({ name }) => name);
  return { batch: now, outcomes: [...kept, ...graded], before, graded, left, former, stop };
}

/** The tasks whose tests need only the artifacts. Error: `usage.invalid` if the run has tasks, but none like that. */
function gradableTasks(tasks: readonly Task[], { tasks: ofRun }: BatchFile): Task[] {
  const gradable = tasks.filter((task) => !needsAgentsContainer(task));
  const isOfRun = ({ name }: Task) => ofRun.some((one) => one.name === name);
  if (gradable.some(isOfRun) || !tasks.some(isOfRun)) return gradable;
  throw new BrigError(
    "these attempts cannot be graded again: their tests run in the agent's container, which is gone",
    {
      code: "usage.invalid",
      hint: "run them again, or let the tasks have a separate verifier",
    },
  );
}

/** The tasks of the run, with these in place of those of the same names. Error: `usage.invalid` if there is none. */
function withTasks(batch: BatchFile, tasks: readonly Task[]): BatchFile {
  const current = new Map(tasks.map((task) => [task.name, task]));
  if (!batch.tasks.some(({ name }) => current.has(name)))
    throw new BrigError("none of these tasks is one of the run's", {
      code: "usage.invalid",
      hint: "name the tasks that the run ran, as they are now",
    });
  return {
    ...batch,
    tasks: batch.tasks.map((old) => {
      const task = current.get(old.name);
      return task === undefined ? old : taskInFile(task);
    }),
  };
}

/** Leaves out attempts whose agent never worked. */
async function withWork(
  store: RunStore,
  attempts: readonly WaitingAttempt[],
  outcomes: ReadonlyMap<string, AttemptOutcome>,
): Promise<WaitingAttempt[]> {
  const kept: WaitingAttempt[] = [];
  for (const one of attempts) {
    const place = { task: one.task.name, attempt: one.attempt };
    const isUngradable = outcomes.get(attemptKey(place))?.failure?.class === "ungradable";
    if (!isUngradable || (await store.readResult(place))?.steps.length !== 0) kept.push(one);
  }
  return kept;
}

/** Another instruction or environment would have led the agent to other work. */
function refuseOtherWork(before: BatchFile, after: BatchFile): void {
  const changed = after.tasks.flatMap((task) => {
    const old = before.tasks.find(({ name }) => name === task.name);
    return old === undefined ? [] : taskDifferences([ofAgent(old)], [ofAgent(task)]);
  });
  if (changed.length === 0) return;
  throw new BrigError(`these tasks are not the ones that the agent worked on:\n${changesText(changed)}`, {
    code: "usage.invalid",
    hint: "give --allow-changed to grade its work by them all the same",
  });
}

function ofAgent(task: BatchFile["tasks"][number]): BatchFile["tasks"][number] {
  const { instruction = "", environment = "" } = task.parts;
  return { ...task, checksum: `${instruction} ${environment}`, parts: { instruction, environment } };
}

function attemptsToGrade(
  { tasks, settings }: BatchFile,
  { outcomes, tasks: current }: { outcomes: ReadonlyMap<string, AttemptOutcome>; tasks: readonly Task[] },
): WaitingAttempt[] {
  const names = new Set(tasks.map(({ name }) => name));
  const byName = new Map(current.filter(({ name }) => names.has(name)).map((task) => [task.name, task]));
  return [...outcomes.values()].flatMap(({ task: name, attempt, status, tries }) => {
    const task = byName.get(name);
    const hasWork = status === "scored" || status === "unscored";
    if (task === undefined || !hasWork || attempt > settings.attempts) return [];
    return [{ task, attempt, work: "grade" as const, tries }];
  });
}

async function removeGrades(
  store: RunStore,
  waiting: readonly WaitingAttempt[],
  keys: ReadonlySet<string>,
): Promise<void> {
  for (const { task, attempt } of waiting) {
    const place = { task: task.name, attempt };
    const result = await store.readResult(place);
    if (result !== null) await writeResult(store.attemptPath(place), withoutGrade(result));
  }
  await store.keepResults((place) => !keys.has(attemptKey(place)));
}

async function gradeAll(
  store: RunStore,
  waiting: readonly WaitingAttempt[],
  options: RegradeOptions,
): Promise<{ graded: AttemptOutcome[]; stop: BatchStop | null }> {
  const graded: AttemptOutcome[] = [];
  await using results = await store.openResults();
  const stop = await runSchedule(waiting, {
    ...options,
    retries: retryPolicy(),
    retryWaitMs: (tries) => retryWaitMs(tries, Math.random),
    limits: {},
    failsFast: false,
    earlier: [],
    run: async ({ task, attempt, tries }, signals) => {
      const folder = store.attemptPath({ task: task.name, attempt });
      return await options.grade({ task, attempt, folder, tries, ...signals });
    },
    keep: async (result) => {
      await results.append(result);
      graded.push(outcomeOf(result));
    },
  });
  return { graded, stop };
}

const SHOWN_ATTEMPTS = 10;

interface GradableAttempt {
  task: Task;
  attempt: number;
}

/** Then nobody can grade an attempt again: its container is gone. */
export function needsAgentsContainer({ steps }: Pick<Task, "steps">): boolean {
  return steps.some(({ verifier }) => verifier.mode === "shared");
}

/** Error: `usage.invalid` with the attempts that cannot be graded from their folders. Nothing has been changed then. */
async function refuseUngradable(store: RunStore, attempts: readonly GradableAttempt[]): Promise<void> {
  const faults: string[] = [];
  for (const { task, attempt } of attempts) {
    const reason = await whyNotGradable(store, { task, attempt });
    if (reason !== null) faults.push(`  ${task.name} #${attempt}: ${reason}`);
  }
  if (faults.length === 0) return;
  const left = faults.length - SHOWN_ATTEMPTS;
  const lines = [...faults.slice(0, SHOWN_ATTEMPTS), ...(left > 0 ? [`  and ${left} more`] : [])];
  throw new BrigError(`these attempts cannot be graded again:\n${lines.join("\n")}`, {
    code: "usage.invalid",
    hint: "leave their tasks out with --exclude, or run them again",
  });
}

async function whyNotGradable(store: RunStore, { task, attempt }: GradableAttempt): Promise<string | null> {
  const result = await store.readResult({ task: task.name, attempt });
  if (result === null) return "its result.json is missing or damaged";
  const reached = task.steps.slice(0, result.steps.length);
  if (reached.some(({ verifier }) => verifier.mode !== "separate"))
    return "its tests run in the agent's container, which is gone";
  const folder = store.attemptPath({ task: task.name, attempt });
  for (const step of reached)
    if (!(await isFile(join(stepFolder(folder, { task, step }), MANIFEST_FILE))))
      return "its artifacts were not kept";
  return reached.length === 0 ? "its agent did not end" : null;
}

async function isFile(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null))?.isFile() === true;
}

/** Returns the attempt as it was before it was graded. It is not counted in any score until it is graded again. */
function withoutGrade(result: AttemptResult): AttemptResult {
  return {
    ...result,
    status: "unscored",
    reward: null,
    rewards: {},
    failure: null,
    steps: result.steps.map((step) => ({ ...step, rewards: null, verification: null })),
    durations: { ...result.durations, verifierMs: null },
  };
}
