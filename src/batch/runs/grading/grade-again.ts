import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { BrigError } from "../../../errors.js";
import type { Task, TaskStep } from "../../tasks/task.js";
import { readManifest } from "../artifacts/artifact-manifest.js";
import { infrastructureFailure, ungradable } from "../evidence.js";
import type { TaskImages } from "../images/task-images.js";
import type { TaskPlace } from "../place/task-sandbox.js";
import { type AttemptResult, attemptResultSchema } from "../results/attempt-result.js";
import { RESULT_FILE } from "../results/run-files.js";
import { gradeOf } from "./rewards.js";
import { stepFolder, timeForTests } from "./run-tests.js";
import { verifySeparately } from "./verify-separately.js";

export interface GradeAgainOptions {
  task: Task;
  images: TaskImages;
  place: TaskPlace;
  /** Tries to write into the result. Default: those that it has. */
  tries?: AttemptResult["tries"] | undefined;
  /** Whether others are graded beside it, which an error must not end. Default: false. */
  isOneOfMany?: boolean | undefined;
}

/**
 * Grades an attempt from the artifacts that its folder has, without the agent, and returns its result with the new
 * grade; without one if the infrastructure fails. Only the output of the tests is written. Error, unless it is one of many:
 * `usage.invalid` for an attempt whose artifacts were not kept, or that was graded in the agent's container.
 */
export async function gradeAgain(folder: string, options: GradeAgainOptions): Promise<AttemptResult> {
  const { task, place, isOneOfMany = false } = options;
  const read = attemptResultSchema.parse(JSON.parse(await readFile(join(folder, RESULT_FILE), "utf8")));
  const before = { ...read, tries: [...(options.tries ?? read.tries)] };
  const beganAt = performance.now();
  const graded = await gradeSteps(folder, before, options).catch(async (error: unknown) => {
    if (place.signal?.aborted === true) {
      if (isOneOfMany) return null;
      throw error;
    }
    const failed = { error, stage: "verify", containerId: null, memoryLimitBytes: null } as const;
    const failure = await infrastructureFailure(place.engine, failed);
    if (failure === null && !isOneOfMany) throw error;
    return failure ?? ungradable(error);
  });
  if (graded === null) return { ...before, status: "cancelled", reward: null, rewards: {} };
  if (!("steps" in graded))
    return { ...before, status: "unscored", reward: null, rewards: {}, failure: graded };
  return {
    ...before,
    taskChecksum: task.checksum,
    status: "scored",
    ...gradeOf(task, graded.steps),
    failure: null,
    steps: graded.steps,
    durations: {
      ...before.durations,
      verifierMs: performance.now() - beganAt,
      verifierExtendedMs: graded.extendedMs,
    },
  };
}

async function gradeSteps(
  folder: string,
  before: AttemptResult,
  options: GradeAgainOptions,
): Promise<{ steps: AttemptResult["steps"]; extendedMs: number }> {
  if (before.steps.length === 0) throw notGradable(folder, "its agent did not end");
  const steps: AttemptResult["steps"] = [];
  let extendedMs = 0;
  for (const [index, step] of options.task.steps.entries()) {
    const earlier = before.steps[index];
    if (earlier === undefined) break;
    const { rewards, time, ...verification } = await gradeStep(folder, { step, ...options });
    steps.push({ ...earlier, rewards, verification });
    extendedMs += time?.extendedMs ?? 0;
  }
  return { steps, extendedMs };
}

async function gradeStep(
  folder: string,
  { task, images, place, step }: GradeAgainOptions & { step: TaskStep },
) {
  if (step.verifier.mode !== "separate") throw notGradable(folder, "its tests run in the agent's container");
  const own = stepFolder(folder, { task, step });
  const manifest = await readManifest(own);
  if (manifest === null) throw notGradable(folder, "its artifacts were not kept");
  const environment = step.verifier.environment ?? task.environment;
  using image = await images.ready(environment.image, { task: task.name, signal: place.signal });
  const allowed = timeForTests(step, place.limits);
  return await verifySeparately(place, { task, step, imageId: image.id, manifest, folder: own, allowed });
}

function notGradable(folder: string, reason: string): BrigError {
  return new BrigError(`the attempt in ${JSON.stringify(folder)} cannot be graded again: ${reason}`, {
    code: "usage.invalid",
    hint: "run the attempt again",
  });
}
