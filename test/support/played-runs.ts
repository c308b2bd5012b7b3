import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type BatchOptions, type BatchOutcome, runAttempts } from "../../src/batch/runs/batch/run-batch.js";
import type { AttemptResult } from "../../src/batch/runs/results/attempt-result.js";
import type { Task, TaskStep } from "../../src/batch/tasks/task.js";
import { batchOptions } from "./batch-runs.js";
import { playedRunner, playedTask } from "./played-attempts.js";

/** A run in which every attempt at a task gets the reward of that task; null for no score. They end in their order. */
export async function playedRun(
  folder: string,
  rewards: Readonly<Record<string, number | null>>,
  given: Partial<BatchOptions> = {},
): Promise<BatchOutcome> {
  const tasks = Object.keys(rewards).map((name) => playedTask(name));
  const play = ({ task }: { task: Task }): Partial<AttemptResult> => {
    const reward = rewards[task.name] ?? null;
    const status = reward === null ? "unscored" : "scored";
    return { status, reward, rewards: reward === null ? {} : { reward }, ...timeNow() };
  };
  return await runAttempts(
    batchOptions(folder, { tasks, runner: playedRunner({ play }), concurrency: 1, ...given }),
  );
}

let clock = Date.parse("2026-11-23T08:00:00Z");

/** No two attempts are equal. */
function timeNow(): Pick<AttemptResult, "startedAt" | "endedAt"> {
  clock += 1000;
  return { startedAt: new Date(clock).toISOString(), endedAt: new Date(clock + 500).toISOString() };
}

/** A task of one step whose artifacts a separate verifier grades. */
export function gradableTask(name: string, given: Partial<Task> = {}): Task {
  const phase = { timeoutSec: null, user: null, network: null };
  const step: TaskStep = {
    name: null,
    instruction: "do it",
    agent: phase,
    files: null,
    setupScript: null,
    healthcheck: null,
    solution: null,
    artifacts: [],
    minRewards: null,
    verifier: {
      ...phase,
      mode: "separate",
      env: {},
      environment: null,
      check: { kind: "command", command: "true" },
    },
  };
  return { ...playedTask(name), steps: [step], ...given };
}

/** What an attempt leaves that can be graded again. */
export function leavesArtifacts({ folder }: { folder: string }): Partial<AttemptResult> {
  writeFileSync(
    join(folder, "artifacts.json"),
    JSON.stringify({ schemaVersion: 1, entries: [], deleted: [], findings: [] }),
  );
  const step = { name: null, agent: "completed", agentMessage: null, rewards: { reward: 0 } } as const;
  return { reward: 0, rewards: { reward: 0 }, steps: [{ ...step, verification: null }] };
}
