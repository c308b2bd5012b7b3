import { z } from "zod";

/** Classes of failures that are not the agent's fault, by the evidence that was found. */
export const infrastructureClasses = [
  "engine-gone",
  "image-failed",
  "host-out-of-memory",
  "disk-full",
  "model-endpoint",
  "sandbox-gone",
  "healthcheck-failed",
  "verifier-start-failed",
] as const;

/** The task, its settings or brig itself: another try would end in the same way. */
const UNGRADABLE = "ungradable";

/** Ways in which the agent's part of an attempt can end. */
export const agentEndings = [
  /** The agent said that it is done, or its program exited with 0. */
  "completed",
  /** The agent's program exited with another code, or its model's conversation failed by its own fault. */
  "failed",
  /** The task's time ran out. */
  "timed-out",
  /** A limit of the run was reached: turns, tokens, cost. */
  "limit",
  /** The kernel ended it above the task's own memory limit. */
  "out-of-memory",
  /** The agent was ended because its container had written more than the task allows. */
  "out-of-disk",
  /** The agent was not run at all, such as the agent `nop`. */
  "not-run",
] as const;

const count = z.int().min(0);
const extended = z.number().min(0).nullable().default(null);

export const usageSchema = z.strictObject({
  inputTokens: count.describe("Cached ones included"),
  cachedInputTokens: count,
  outputTokens: count,
  costUsd: z.number().min(0).nullable().describe("Null if the price of the model is unknown"),
  turns: count.describe("Requests to the model"),
  toolCalls: count,
});

export const resourcesSchema = z.strictObject({
  memoryRequestedBytes: count.nullable().describe("What the task asks for"),
  memoryLimitBytes: count.nullable().describe("Above it the kernel ends the attempt"),
  peakMemoryBytes: count.nullable(),
  cpuMs: z.number().min(0).nullable(),
  throttledMs: z
    .number()
    .min(0)
    .nullable()
    .describe("Time that its own limit kept the attempt from its processors"),
  waitedForCpuMs: z
    .number()
    .min(0)
    .nullable()
    .default(null)
    .describe("Time that agent and tests lost because others held the processors; an estimate"),
  diskRequestedBytes: count
    .nullable()
    .default(null)
    .describe("What the task asks for; an agent that is found to have written more is ended"),
});

export const failureSchema = z.strictObject({
  class: z
    .enum([...infrastructureClasses, UNGRADABLE])
    .describe("`ungradable`: another try would end in the same way"),
  message: z.string(),
  evidence: z.array(z.string()).describe("What the engine and the kernel said"),
});

const confirmationSchema = z.strictObject({
  outcome: z
    .enum(["clean", "outside", "unknown"])
    .describe("`outside`: a fresh container with nothing but the work does not pass"),
  paths: z.array(z.string()).describe("Of `outside`: the changes elsewhere with which it passes"),
  isSmallest: z.boolean().describe("Whether it does not pass without any one of them"),
  gradings: count,
  message: z.string().nullable(),
});
/** Finding about whether a pass of a shared verifier rests on the work alone. */
export type Confirmation = z.infer<typeof confirmationSchema>;

const verificationSchema = z.strictObject({
  mode: z.enum(["separate", "shared", "none"]),
  verifier: z
    .enum(["scored", "no-reward", "invalid-reward", "timed-out", "tampered"])
    .describe("`tampered`: the reward was not written by the verifier"),
  message: z.string().nullable(),
  exitCode: z.int().nullable(),
  tests: z
    .array(z.strictObject({ name: z.string(), status: z.enum(["passed", "failed", "skipped", "error"]) }))
    .nullable()
    .describe("Null where the tests say nothing about single ones"),
  findings: z
    .array(z.string())
    .describe("What was found before the tests ran, and neutralised unless it is among the notes"),
  notes: z.array(z.string()).default([]).describe("Those of the findings that are no more than said"),
  confirmation: confirmationSchema
    .nullable()
    .default(null)
    .describe("Of a pass in the agent's container, which was graded again in a fresh one"),
});

const stepSchema = z.strictObject({
  name: z.string().nullable(),
  agent: z.enum(agentEndings),
  agentMessage: z.string().nullable(),
  rewards: z.record(z.string(), z.number()).nullable(),
  verification: verificationSchema.nullable(),
});

/** `result.json` of an attempt. Written once, when it has ended, and whole or not at all. */
export const attemptResultSchema = z.strictObject({
  schemaVersion: z.literal(1),
  task: z.string(),
  attempt: z.int().min(1).describe("Counts the attempts at a task"),
  taskChecksum: z.string(),
  agent: z.strictObject({ name: z.string(), model: z.string().nullable() }),
  status: z
    .enum(["scored", "unscored", "infrastructure", "cancelled"])
    .describe(
      "Only scored ones count; unscored: the agent is done and its artifacts are kept, but there is no grade, or there can be none (`ungradable`)",
    ),
  reward: z.number().nullable().describe("The number that counts; null unless scored"),
  rewards: z.record(z.string(), z.number()),
  failure: failureSchema
    .nullable()
    .describe("Given for `infrastructure` and, if that was the reason, `unscored`"),
  steps: z.array(stepSchema),
  usage: usageSchema,
  resources: resourcesSchema,
  startedAt: z.iso.datetime(),
  endedAt: z.iso.datetime(),
  durations: z.strictObject({
    environmentMs: z.number().min(0).nullable(),
    agentMs: z.number().min(0).nullable(),
    verifierMs: z.number().min(0).nullable(),
    agentExtendedMs: extended.describe("How much of it was beyond the agent's limit, because of others"),
    verifierExtendedMs: extended.describe("The same for the tests"),
  }),
  tries: z
    .array(z.strictObject({ startedAt: z.iso.datetime(), endedAt: z.iso.datetime(), failure: failureSchema }))
    .describe("Earlier tries of this attempt that the infrastructure ended"),
  imageId: z.string().nullable(),
  files: z
    .strictObject({
      trajectory: z.string().nullable(),
      session: z.string().nullable(),
      testOutput: z.string().nullable(),
      diff: z.string().nullable(),
      agentOutput: z.string().nullable(),
      proof: z.string().nullable(),
    })
    .describe("Relative to the attempt's folder; null for what there is not"),
});
/** Result of an attempt, as in its `result.json`. */
export type AttemptResult = z.infer<typeof attemptResultSchema>;
/** Failure of an attempt that is not the agent's fault. */
export type AttemptFailure = z.infer<typeof failureSchema>;
export type AttemptUsage = z.infer<typeof usageSchema>;
