import { availableParallelism } from "node:os";
import { BrigError } from "../errors.js";
import type { Environment } from "../lib/env.js";
import { errnoOf, systemReason } from "../lib/errno.js";
import { fullDiskOfBrig } from "../lib/files/full-disk.js";
import { randomNumbers, shuffled } from "../lib/random-numbers.js";
import type { Engine } from "../sandbox/index.js";
import type { Summary } from "./report/summary.js";
import { writeReports } from "./report/write-reports.js";
import { openAttemptAdmission } from "./runs/admission/attempt-admission.js";
import type { AttemptAgent } from "./runs/agents/attempt-agent.js";
import type { AttemptLimits } from "./runs/attempt/attempt.js";
import {
  type BatchSettings,
  batchSettingsSchema,
  type RetryPolicy,
  retryWaitMs,
} from "./runs/batch/batch-settings.js";
import { containerRunner } from "./runs/batch/container-runner.js";
import {
  type AttemptRunner,
  type BatchOptions,
  type BatchOutcome,
  runAttempts,
} from "./runs/batch/run-batch.js";
import type { TaskImages } from "./runs/images/task-images.js";

type Kept = "folder" | "tasks" | "limits" | "failsFast" | "resume" | "onEvent" | "drain" | "signal";

/** A batch whose tasks are read, and whose agent and images are open. */
export interface TasksRun extends Pick<BatchOptions, Kept> {
  agent: AttemptAgent;
  /** Other options that influence the agent, for the settings of the run. */
  agentOptions: BatchSettings["agent"]["options"];
  attempts: number;
  attemptLimits: AttemptLimits;
  runtime: string | undefined;
  /** Undefined for as many attempts at once as there are processors. */
  concurrency: number | undefined;
  retries: RetryPolicy;
  /** Undefined for the usual order. */
  shuffleSeed: number | undefined;
  place: TasksPlace;
  environment: Environment;
}

/** Place where attempts run. If that is elsewhere, it is decided there when they start. */
export type TasksPlace =
  | { kind: "engine"; engine: Engine; images: TaskImages }
  | { kind: "elsewhere"; runner: AttemptRunner };

/**
 * Runs the attempts that have not ended yet, and writes the reports of the run. Errors: those of `runAttempts`; `store.failed`
 * if the disk of the folder is full.
 */
export async function runTasks(run: TasksRun): Promise<{ outcome: BatchOutcome; summary: Summary }> {
  try {
    return await runAndReport(run);
  } catch (error) {
    throw fullFolder(run.folder, error) ?? error;
  }
}

/** Null for any other error than that of a full disk. */
function fullFolder(folder: string, cause: unknown): BrigError | null {
  const disk = fullDiskOfBrig(cause, folder);
  if (disk === undefined) return null;
  return new BrigError(`the results of the batch cannot be written in ${folder}: ${systemReason(cause)}`, {
    code: "store.failed",
    hint: "make room there, and give the same command again: attempts that have ended are kept, and the others run",
    ...{ errno: errnoOf(cause), disk, cause },
  });
}

async function runAndReport(run: TasksRun): Promise<{ outcome: BatchOutcome; summary: Summary }> {
  const { shuffleSeed } = run;
  const concurrency = run.concurrency ?? availableParallelism();
  const order =
    shuffleSeed === undefined
      ? undefined
      : <T>(waiting: readonly T[]) => shuffled(waiting, randomNumbers(shuffleSeed));
  const outcome = await runAttempts({
    ...run,
    ...runnerOf(run, concurrency),
    settings: settingsOf(run),
    concurrency,
    order,
    retryWaitMs: (tries) => retryWaitMs(tries, Math.random),
    now: () => new Date(),
  });
  return { outcome, summary: await writeReports(run.folder, outcome) };
}

function runnerOf(run: TasksRun, maxAtOnce: number): Pick<BatchOptions, "runner" | "admission"> {
  const { place, agent, environment, attemptLimits: limits, runtime } = run;
  if (place.kind === "elsewhere") return { runner: place.runner };
  const { engine, images } = place;
  return {
    runner: containerRunner({ agent, engine, images, environment, limits, runtime }),
    admission: (onWait) => openAttemptAdmission(engine, { maxAtOnce, onWait }),
  };
}

type SettingsSource = Pick<TasksRun, "agent" | "agentOptions" | "attempts" | "attemptLimits" | "runtime">;

const limitNames = Object.keys(batchSettingsSchema.shape.limits.shape) as (keyof BatchSettings["limits"])[];

/** Settings of a run that influence the results of its attempts. */
export function settingsOf(run: SettingsSource): BatchSettings {
  const { agent, agentOptions, attempts, attemptLimits, runtime } = run;
  const limits = limitNames.map((name) => [name, attemptLimits[name] ?? null]);
  return {
    agent: { name: agent.name, model: agent.model, options: agentOptions },
    attempts,
    limits: { ...Object.fromEntries(limits), timeoutExtension: attemptLimits.timeoutExtension ?? 0 },
    runtime: runtime ?? null,
  };
}
