import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { BatchFile, BatchSettings } from "../../src/batch/runs/batch/batch-settings.js";
import type { AttemptOrder, AttemptRunner } from "../../src/batch/runs/batch/run-batch.js";
import type { AttemptFailure, AttemptResult } from "../../src/batch/runs/results/attempt-result.js";
import type { Task } from "../../src/batch/tasks/task.js";
import { writeDurably } from "../../src/lib/files/durable-file.js";

/** A task that is never really run. */
export function playedTask(name: string, given: Partial<Task> = {}): Task {
  const network = { mode: "no-network", allowedHosts: [] } as const;
  return {
    name,
    format: "plain",
    source: `tasks.jsonl:${name}`,
    checksum: `checksum of ${name}`,
    parts: { instruction: "i", environment: "e", tests: "t", solution: "s", settings: "g" },
    metadata: {},
    environment: {
      image: { kind: "reference", reference: "brig/base" },
      files: null,
      workdir: null,
      env: {},
      network,
      limits: { cpus: null, memoryMb: null, storageMb: null },
      healthcheck: null,
    },
    steps: [],
    rewardStrategy: "mean",
    warnings: [],
    ...given,
  };
}

/** `task-00`, `task-01`, … */
export function playedTasks(count: number): Task[] {
  return Array.from({ length: count }, (_, index) => playedTask(`task-${String(index).padStart(2, "0")}`));
}

export function playedResult(given: Partial<AttemptResult> = {}): AttemptResult {
  return {
    schemaVersion: 1,
    task: "task-00",
    attempt: 1,
    taskChecksum: "checksum of task-00",
    agent: { name: "nop", model: null },
    status: "scored",
    reward: 1,
    rewards: { reward: 1 },
    failure: null,
    steps: [],
    usage: {
      inputTokens: 100,
      cachedInputTokens: 10,
      outputTokens: 20,
      costUsd: 0.25,
      turns: 2,
      toolCalls: 3,
    },
    resources: {
      memoryRequestedBytes: null,
      memoryLimitBytes: null,
      peakMemoryBytes: null,
      cpuMs: null,
      throttledMs: null,
      waitedForCpuMs: null,
      diskRequestedBytes: null,
    },
    startedAt: "2026-11-23T08:00:00.000Z",
    endedAt: "2026-11-23T08:00:01.000Z",
    durations: {
      environmentMs: 100,
      agentMs: 800,
      verifierMs: 100,
      agentExtendedMs: 0,
      verifierExtendedMs: 0,
    },
    tries: [],
    imageId: null,
    files: { trajectory: null, session: null, testOutput: null, diff: null, agentOutput: null, proof: null },
    ...given,
  };
}

export const engineGone: AttemptFailure = {
  class: "engine-gone",
  message: "the engine went away",
  evidence: ["connection refused"],
};

export const infrastructure = {
  status: "infrastructure",
  reward: null,
  rewards: {},
  failure: engineGone,
} as const;

export interface PlayedRunnerOptions {
  /** What a try gives, besides what follows from the order. Default: a reward of 1. */
  play?: (order: AttemptOrder) => Partial<AttemptResult> | Promise<Partial<AttemptResult>>;
}

/** Runs nothing, and writes the files that a real attempt would leave: partial ones first, then its result. */
export function playedRunner({ play = () => ({}) }: PlayedRunnerOptions = {}): AttemptRunner & {
  orders: AttemptOrder[];
} {
  const orders: AttemptOrder[] = [];
  const end = async (order: AttemptOrder, given: Partial<AttemptResult>) => {
    const { task, attempt, tries, folder } = order;
    const place = { task: task.name, attempt, taskChecksum: task.checksum, tries: [...tries] };
    const result = playedResult({ ...place, ...given });
    await writeDurably(join(folder, "result.json"), JSON.stringify(result));
    return result;
  };
  return {
    orders,
    run: async (order) => {
      orders.push(order);
      order.onStage("agent");
      mkdirSync(join(order.folder, "agent"));
      writeFileSync(join(order.folder, "agent", "output.txt"), "partial");
      return await end(order, await play(order));
    },
    grade: async (order) => {
      orders.push(order);
      return await end(order, { reward: 0.5 });
    },
  };
}

export const playedSettings: BatchSettings = {
  agent: { name: "nop", model: null, options: {} },
  attempts: 1,
  limits: {
    agentTimeoutSec: null,
    timeoutMultiplier: null,
    timeoutExtension: 0,
    maxTurns: null,
    maxTokens: null,
    maxCostUsd: null,
    memoryHeadroom: null,
    keepServices: null,
    memoryMb: null,
    cpus: null,
    pids: null,
  },
  runtime: null,
};

/** `batch.json` of a run of so many tasks. */
export function playedBatch(tasks: number, given: Partial<BatchSettings> = {}): BatchFile {
  return {
    schemaVersion: 1,
    brigVersion: "0.0.0",
    createdAt: "2026-11-23T08:00:00.000Z",
    settings: { ...playedSettings, ...given },
    tasks: playedTasks(tasks).map(({ name, checksum, parts, format }) => ({
      name,
      checksum,
      parts: { ...parts },
      format,
      tags: [],
    })),
  };
}

/** Attempts that run until they are cancelled. */
export function endlessRunner() {
  return playedRunner({
    play: async ({ signal }) => {
      await new Promise<void>((resolve) => {
        signal.addEventListener("abort", () => resolve(), { once: true });
        if (signal.aborted) resolve();
      });
      return { status: "cancelled", reward: null };
    },
  });
}
