import { open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Environment } from "../../../lib/env.js";
import type { Engine } from "../../../sandbox/index.js";
import type { Task } from "../../tasks/task.js";
import type { AttemptAgent } from "../agents/attempt-agent.js";
import type { TaskImages } from "../images/task-images.js";
import type { AttemptResult } from "../results/attempt-result.js";
import { RESULT_FILE } from "../results/run-files.js";

/** Everything that one attempt at a task needs. */
export interface Attempt {
  task: Task;
  /** Counts the attempts at this task from 1. */
  attempt: number;
  agent: AttemptAgent;
  images: TaskImages;
  engine: Engine;
  environment: Environment;
  /** Exists and is empty. Everything about the attempt is written below it. */
  folder: string;
  limits: AttemptLimits;
  /**
   * Whether others run beside it, which an error must not end: then what only the user can mend is a result as well, without a
   * score. Default: false.
   */
  isOneOfMany?: boolean | undefined;
  /** Earlier tries that the infrastructure ended, for the result. Default: none. */
  tries?: AttemptResult["tries"] | undefined;
  /** OCI runtime; undefined for the engine's default. */
  runtime?: string | undefined;
  /** Aborting ends the attempt, whose status is then "cancelled". */
  signal?: AbortSignal | undefined;
  /** Called with each stage that begins, and with each grading of the stage `confirm`. */
  onStage?: OnStage | undefined;
}

export const attemptStages = ["image", "start", "agent", "export", "verify", "confirm"] as const;

/** Stage that an attempt has reached. In `confirm`, a pass in the agent's container is graded again in fresh ones. */
export type AttemptStage = (typeof attemptStages)[number];

export type OnStage = (stage: AttemptStage, grading?: { number: number; atMost: number }) => void;

/** Limits that a run sets for all its attempts. Undefined for the task's own value. */
export interface AttemptLimits {
  agentTimeoutSec?: number | undefined;
  /** Multiply the task's own times. Default 1. */
  timeoutMultiplier?: number | undefined;
  /**
   * Most by which a time limit is extended for time in which others held the processors, as a share of the limit. Default 0:
   * never.
   */
  timeoutExtension?: number | undefined;
  maxTurns?: number | undefined;
  maxTokens?: number | undefined;
  maxCostUsd?: number | undefined;
  /** Let what the agent left running go on while tests in its container run. Default: as the task says. */
  keepServices?: boolean | undefined;
  /** Memory limit as a multiple of what the task asks for; above it the kernel ends programs. Default 3. */
  memoryHeadroom?: number | undefined;
  /** MiB that each container may use before the kernel ends programs in it, whatever the task asks for. At least 64. */
  memoryMb?: number | undefined;
  /** Processors for each container, in place of those that the task asks for. At least 0.01. */
  cpus?: number | undefined;
  /** Processes and threads in a container at the same time. Default 4096. */
  pids?: number | undefined;
}

/** The limits that decide how much a container may use. */
export type ContainerLimits = Pick<AttemptLimits, "memoryHeadroom" | "memoryMb" | "cpus" | "pids">;

/** Writes the result of an attempt so that the file is there whole or not at all, whenever the machine stops. */
export async function writeResult(folder: string, result: AttemptResult): Promise<void> {
  const temporary = join(folder, `.${RESULT_FILE}.tmp`);
  try {
    const file = await open(temporary, "w", 0o644);
    try {
      await file.writeFile(`${JSON.stringify(result, null, 2)}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, join(folder, RESULT_FILE));
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  const directory = await open(folder, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
