import { z } from "zod";
import { passKinds } from "../../runs/results/attempt-outcome.js";

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
