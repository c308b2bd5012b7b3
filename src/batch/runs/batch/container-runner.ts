import type { Environment } from "../../../lib/env.js";
import type { Engine } from "../../../sandbox/index.js";
import type { Task } from "../../tasks/task.js";
import type { AttemptAgent } from "../agents/attempt-agent.js";
import { type AttemptLimits, writeResult } from "../attempt/attempt.js";
import { runAttempt } from "../attempt/run-attempt.js";
import { refuseUnsupported } from "../attempt/unsupported.js";
import { gradeAgain } from "../grading/grade-again.js";
import type { TaskImages } from "../images/task-images.js";
import type { AttemptRunner } from "./run-batch.js";

export interface ContainerRunnerOptions {
  agent: AttemptAgent;
  engine: Engine;
  images: TaskImages;
  environment: Environment;
  limits: AttemptLimits;
  runtime: string | undefined;
}

/** Error: `usage.invalid` with the first thing that any of the tasks asks for and no attempt could give. */
export function refuseUnsupportedTasks(tasks: readonly Task[]): void {
  for (const task of tasks) refuseUnsupported(task);
}

/** Runs attempts in containers of this engine. An agent that cannot work ends the run before the first one. */
export function containerRunner(options: ContainerRunnerOptions): AttemptRunner {
  let prepared: Promise<void> | undefined;
  return {
    async run(order) {
      prepared ??= options.agent.prepare?.();
      await prepared;
      return await runAttempt({ ...options, ...order, isOneOfMany: true });
    },
    grade: containerGrader(options),
  };
}

/** Grades artifacts in containers of this engine. */
export function containerGrader(
  options: Omit<ContainerRunnerOptions, "agent">,
): NonNullable<AttemptRunner["grade"]> {
  const { engine, environment, images, runtime, limits } = options;
  return async ({ task, folder, tries, signal, onStage }) => {
    const place = { engine, environment, runtime, limits, signal };
    onStage("verify");
    const result = await gradeAgain(folder, { task, images, place, tries, isOneOfMany: true });
    // A cancelled grading writes no result, so that the kept work can still be graded.
    if (result.status !== "cancelled") await writeResult(folder, result);
    return result;
  };
}
