import { z } from "zod";
import { attemptResultSchema, attemptStages } from "../../../batch/index.js";
import { waitMsSchema } from "./sandbox-schemas.js";

const LONGEST_POLL_MS = 60_000;

const agentSchema = z
  .union([
    z.enum(["oracle", "nop"]),
    z.strictObject({
      command: z
        .string()
        .min(1)
        .max(65_536)
        .describe("A command of the container's shell; BRIG_INSTRUCTION_FILE has the instruction"),
    }),
  ])
  .describe("What works on the task. Default: the agent that the service was started with");

export const createEpisodeSchema = z.strictObject({
  task: z.string().min(1).optional().describe("One of the service's tasks. Either this or instruction"),
  instruction: z
    .string()
    .min(1)
    .max(1_048_576)
    .optional()
    .describe("What the agent is to do, without a task"),
  image: z.string().min(1).max(512).optional().describe("With instruction. Default: the service's"),
  check: z
    .string()
    .min(1)
    .max(65_536)
    .optional()
    .describe("With instruction: a shell command that succeeds, in a fresh container, if the agent did it"),
  agent: agentSchema.optional(),
  timeoutMs: z
    .int()
    .min(100)
    .max(7 * 24 * 3_600_000)
    .optional()
    .describe("For the agent. Default: the task's own"),
  maxTurns: z.int().min(1).optional().describe("Requests to the model"),
  maxTokens: z.int().min(1).optional(),
  waitMs: waitMsSchema,
});
/** What an episode is to be: a task and an agent, or an instruction and a check. */
export type EpisodeOptions = z.input<typeof createEpisodeSchema>;

export const episodeSchema = z.object({
  id: z.string(),
  task: z.string(),
  agent: z.string(),
  status: z
    .enum(["running", "grading", "ended", "failed"])
    .describe("ended: there is a result. failed: there is an error instead"),
  stage: z.enum(attemptStages).nullable(),
  createdAt: z.iso.datetime(),
  result: attemptResultSchema.nullable(),
  error: z
    .object({ code: z.string(), message: z.string(), hint: z.string().optional() })
    .nullable()
    .describe("What has to be mended before the task can be run"),
});
/** An episode as its service describes it. */
export type Episode = z.infer<typeof episodeSchema>;

export const episodeListSchema = z.object({ episodes: z.array(episodeSchema) });

export const pollSchema = z.strictObject({
  waitMs: z.coerce
    .number()
    .int()
    .min(0)
    .max(LONGEST_POLL_MS)
    .optional()
    .describe("Answer only when the episode has ended, or after so long. Default: 0"),
});

export const taskListSchema = z.object({
  tasks: z.array(z.object({ name: z.string(), instruction: z.string() })),
});

export const healthSchema = z.object({
  status: z.enum(["ok", "draining"]),
  version: z.string(),
  sandboxes: z.int().describe("Places that are taken, those of episodes included"),
  maxSandboxes: z.int(),
});
/** How a service is, and what places it has. */
export type ServiceHealth = z.infer<typeof healthSchema>;
