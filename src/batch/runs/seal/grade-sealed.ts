import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeDirectory } from "../../../lib/files/make-directory.js";
import type { Task } from "../../tasks/task.js";
import { deservesRetry, fieldDifferences, retryPolicy } from "../batch/batch-settings.js";
import type { AttemptRunner } from "../batch/run-batch.js";
import { RunStore } from "../batch/run-store.js";
import { copyAttempt } from "../merge/copy-attempt.js";
import { needsAgentsContainer } from "../regrade.js";
import type { AttemptResult } from "../results/attempt-result.js";
import { readResults } from "../results/results-file.js";

type GradedOutcome =
  | { kind: "same" }
  /** `differences`: each field that is not as it was sealed. */
  | { kind: "different"; differences: { field: string; sealed: string; found: string }[] }
  /** The task is not the one that the run ran, so its tests say nothing about this attempt. */
  | { kind: "other-task"; sealed: string; found: string }
  | { kind: "failed"; reason: string }
  /** The tests ran in the agent's container, which is gone: the rewards are as they were signed, and nobody can tell more. */
  | { kind: "left-out" };

export interface GradedSealed {
  task: string;
  attempt: number;
  outcome: GradedOutcome;
}

export interface GradeSealedOptions {
  tasks: readonly Task[];
  grade: NonNullable<AttemptRunner["grade"]>;
  signal: AbortSignal;
  onGraded?: ((graded: GradedSealed) => void) | undefined;
}

/**
 * Grades each scored attempt at these tasks again, from a copy of its artifacts, and compares the rewards. The
 * sealed run is not changed. Error: the signal's reason.
 */
export async function gradeSealed(folder: string, options: GradeSealedOptions): Promise<GradedSealed[]> {
  const tasks = new Map(options.tasks.map((task) => [task.name, task]));
  const from = new RunStore(folder);
  const all: GradedSealed[] = [];
  for await (const result of readResults(from.resultsPath)) {
    const task = tasks.get(result.task);
    if (task === undefined || result.status !== "scored") continue;
    const outcome = await gradeOne(from, { result, task }, options);
    const graded = { task: result.task, attempt: result.attempt, outcome };
    all.push(graded);
    options.onGraded?.(graded);
  }
  return all;
}

async function gradeOne(
  from: RunStore,
  { result, task }: { result: AttemptResult; task: Task },
  { grade, signal }: GradeSealedOptions,
): Promise<GradedOutcome> {
  if (task.checksum !== result.taskChecksum)
    return { kind: "other-task", sealed: result.taskChecksum, found: task.checksum };
  if (needsAgentsContainer(task)) return { kind: "left-out" };
  const scratch = await mkdtemp(join(tmpdir(), "brig-verify-"));
  try {
    const copy = new RunStore(scratch);
    const { attempt, tries } = result;
    const path = copy.attemptPath({ task: task.name, attempt });
    await makeDirectory(join(path, ".."));
    await copyAttempt(from, copy, { result, attempt });
    const order = { task, attempt, folder: path, tries, signal, onStage: () => undefined };
    const first = await grade(order);
    // A fault of the infrastructure is likely to be over at the second try.
    const found = deservesRetry(first, retryPolicy()) ? await grade(order) : first;
    signal.throwIfAborted();
    return outcomeOf(result, found);
  } catch (error) {
    signal.throwIfAborted();
    return { kind: "failed", reason: error instanceof Error ? error.message : String(error) };
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

function outcomeOf(sealed: AttemptResult, found: AttemptResult): GradedOutcome {
  if (found.status !== "scored")
    return { kind: "failed", reason: found.failure?.message ?? "there is no grade" };
  const differences = fieldDifferences(rewardFields(sealed), rewardFields(found)).map(
    ({ field, before, after }) => ({ field, sealed: before ?? "nothing", found: after ?? "nothing" }),
  );
  return differences.length === 0 ? { kind: "same" } : { kind: "different", differences };
}

function rewardFields({ reward, rewards }: AttemptResult): [string, string][] {
  const each = Object.entries(rewards).map(([key, value]): [string, string] => [
    `rewards.${key}`,
    String(value),
  ]);
  return [["reward", String(reward)], ...each];
}
