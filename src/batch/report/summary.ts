import { z } from "zod";
import { noUsage, usageTogether } from "../runs/agents/attempt-agent.js";
import type { BatchFile } from "../runs/batch/batch-settings.js";
import { type AttemptOutcome, type PassKind, passes, passKinds } from "../runs/results/attempt-outcome.js";
import { mean, meanReward, passEstimates } from "./statistics.js";

const count = z.int().min(0);

const estimateSchema = z
  .strictObject({ value: z.number(), low: z.number().nullable(), high: z.number().nullable() })
  .describe("With a 95 % interval; null where there are too few tasks for one");

const passKindsSchema = z
  .record(z.enum(passKinds), count)
  .describe(
    "How attempts passed: `shared-outside` rests on changes outside of the work, of `shared-unconfirmed` that is not known",
  );

/** `summary.json`. */
export const summarySchema = z.strictObject({
  schemaVersion: z.literal(1),
  brigVersion: z.string(),
  agent: z.strictObject({ name: z.string(), model: z.string().nullable() }),
  tasks: count,
  attemptsPerTask: count,
  attempts: z.strictObject({
    planned: count,
    scored: count,
    passed: count.describe("Scored with a reward of 1 or more"),
    unscored: count.describe("The agent was done, but there is no grade"),
    infrastructure: count.describe("Ended by the infrastructure; they count in no score"),
    missing: count.describe("Not run to their end yet"),
  }),
  passKinds: passKindsSchema,
  reward: estimateSchema.nullable().describe("The mean over tasks of their mean rewards"),
  passes: z.array(
    z.strictObject({
      k: z.int().min(1),
      passAt: estimateSchema.describe("The chance that at least one of k attempts passes"),
      passAll: estimateSchema.describe("The chance that all k attempts pass"),
      tasks: count.describe("Those with at least k scored attempts"),
    }),
  ),
  failures: z.record(z.string(), count).describe("Attempts without a score, by class of failure"),
  tries: count.describe("Tries that the infrastructure ended and that were made again"),
  usage: z.strictObject({
    inputTokens: count,
    cachedInputTokens: count,
    outputTokens: count,
    costUsd: z.number().nullable().describe("Null if the cost of any attempt is unknown"),
    turns: count,
    toolCalls: count,
  }),
  startedAt: z.iso.datetime().nullable(),
  endedAt: z.iso.datetime().nullable(),
  perTask: z.array(
    z.strictObject({
      task: z.string(),
      reward: z.number().nullable().describe("The mean of its scored attempts"),
      scored: count,
      passed: count,
      passKinds: passKindsSchema,
      unscored: count,
      infrastructure: count,
      missing: count,
    }),
  ),
});
/** Summary of a run, as in `summary.json`. */
export type Summary = z.infer<typeof summarySchema>;

type TaskSummary = Summary["perTask"][number];

/** Attempts of the infrastructure and those without a grade count in no score; both are counted apart. */
export function summarise(batch: BatchFile, outcomes: readonly AttemptOutcome[]): Summary {
  const { settings, tasks, brigVersion } = batch;
  const byTask = outcomesByTask(batch, outcomes);
  const perTask = [...byTask].map(([task, own]) => taskSummary(task, own, settings.attempts));
  const total = (key: Exclude<keyof TaskSummary, "task" | "reward" | "passKinds">) =>
    perTask.reduce((sum, one) => sum + one[key], 0);
  const attempts = {
    planned: tasks.length * settings.attempts,
    scored: total("scored"),
    passed: total("passed"),
    unscored: total("unscored"),
    infrastructure: total("infrastructure"),
    missing: total("missing"),
  };
  // Sorting times in ISO 8601 as strings puts the earliest first.
  const [starts, ends] = [outcomes.map(({ startedAt }) => startedAt), outcomes.map(({ endedAt }) => endedAt)];
  return {
    schemaVersion: 1,
    brigVersion,
    agent: { name: settings.agent.name, model: settings.agent.model },
    tasks: tasks.length,
    attemptsPerTask: settings.attempts,
    attempts,
    passKinds: kindsOf(outcomes.filter(({ task }) => byTask.has(task))),
    reward: meanReward([...byTask.values()].map(rewardsOf)),
    passes: passEstimates(perTask),
    failures: failuresByClass(outcomes),
    tries: outcomes.reduce((sum, { tries }) => sum + tries.length, 0),
    usage: outcomes.map(({ usage }) => usage).reduce(usageTogether, noUsage),
    startedAt: starts.toSorted().at(0) ?? null,
    endedAt: ends.toSorted().at(-1) ?? null,
    perTask,
  };
}

function outcomesByTask(
  { tasks }: BatchFile,
  outcomes: readonly AttemptOutcome[],
): Map<string, AttemptOutcome[]> {
  const byTask = new Map<string, AttemptOutcome[]>(tasks.map(({ name }) => [name, []]));
  for (const outcome of outcomes) byTask.get(outcome.task)?.push(outcome);
  return byTask;
}

function taskSummary(task: string, outcomes: readonly AttemptOutcome[], attempts: number): TaskSummary {
  const rewards = rewardsOf(outcomes);
  const countOf = (status: AttemptOutcome["status"]) =>
    outcomes.filter((outcome) => outcome.status === status).length;
  return {
    task,
    reward: rewards.length === 0 ? null : mean(rewards),
    scored: rewards.length,
    passed: outcomes.filter(passes).length,
    passKinds: kindsOf(outcomes),
    unscored: countOf("unscored"),
    infrastructure: countOf("infrastructure"),
    missing: Math.max(0, attempts - outcomes.length),
  };
}

function kindsOf(outcomes: readonly AttemptOutcome[]): Summary["passKinds"] {
  const countOf = (kind: PassKind) => outcomes.filter(({ passKind }) => passKind === kind).length;
  return Object.fromEntries(passKinds.map((kind) => [kind, countOf(kind)])) as Summary["passKinds"];
}

function rewardsOf(outcomes: readonly AttemptOutcome[]): number[] {
  return outcomes.flatMap(({ status, reward }) => (status === "scored" && reward !== null ? [reward] : []));
}

function failuresByClass(outcomes: readonly AttemptOutcome[]): Record<string, number> {
  const failures: Record<string, number> = {};
  for (const { status, failure } of outcomes) {
    if (status === "scored") continue;
    const name = failure?.class ?? "no-grade";
    failures[name] = (failures[name] ?? 0) + 1;
  }
  return failures;
}
