import { z } from "zod";
import { networkModes } from "../network.js";

/** The keys that brig reads. Others are warned of, since published tasks carry many of their own. */
const seconds = z.number().positive();
const megabytes = z.number().int().positive();
const variables = z.record(z.string().regex(/^[^=\0]+$/, "it must be the name of a variable"), z.string());
const user = z.union([z.string().min(1), z.number().int().min(0)], {
  error: "it must be the name or the number of a user",
});

const network = {
  network_mode: z.enum(networkModes).optional(),
  allowed_hosts: z.array(z.string()).optional(),
};

const healthcheckSchema = z.object({
  command: z.string().min(1),
  interval_sec: seconds.default(5),
  timeout_sec: seconds.default(30),
  start_period_sec: z.number().min(0).default(0),
  start_interval_sec: seconds.default(5),
  retries: z.number().int().min(1).default(3),
});

const environmentSchema = z.object({
  build_timeout_sec: seconds.default(600),
  docker_image: z.string().min(1).optional(),
  os: z.string().default("linux"),
  cpus: z.number().positive().optional(),
  memory_mb: megabytes.optional(),
  storage_mb: megabytes.optional(),
  memory: z.string().optional(),
  storage: z.string().optional(),
  gpus: z.number().int().min(0).optional(),
  gpu_types: z.array(z.string()).optional(),
  tpu: z.unknown().optional(),
  ...network,
  allow_internet: z.boolean().optional(),
  env: variables.default({}),
  mcp_servers: z.array(z.unknown()).default([]),
  skills_dir: z.string().optional(),
  workdir: z.string().startsWith("/", "it must be an absolute path").optional(),
  healthcheck: healthcheckSchema.optional(),
});

const agentSchema = z.object({ timeout_sec: seconds.optional(), user: user.optional(), ...network });

/** Its defaults are applied after a step has taken over what the task says. */
const verifierSchema = z.object({
  timeout_sec: seconds.optional(),
  env: variables.default({}),
  user: user.optional(),
  ...network,
  environment_mode: z.enum(["shared", "separate"]).optional(),
  keep_services: z
    .boolean()
    .optional()
    .describe("brig's own: what the agent left running goes on while tests run"),
  environment: environmentSchema.optional(),
  collect: z.array(z.unknown()).optional(),
});

const artifactsSchema = z.array(
  z.union(
    [
      z.string(),
      z.object({
        source: z.string(),
        destination: z.string().optional(),
        exclude: z.array(z.string()).optional(),
        service: z.string().optional(),
      }),
    ],
    { error: "it must be a path, or a table with a source" },
  ),
);

const stepSchema = z.object({
  name: z
    .string()
    .regex(
      /^[A-Za-z0-9_-](?:[A-Za-z0-9._ -]{0,98}[A-Za-z0-9._-])?$/,
      "it must be the name of a directory in steps/",
    ),
  agent: agentSchema.prefault({}),
  verifier: verifierSchema.prefault({}),
  min_reward: z
    .union([z.number(), z.record(z.string(), z.number())], {
      error: "it must be a number, or numbers by key",
    })
    .optional(),
  healthcheck: healthcheckSchema.optional(),
  artifacts: artifactsSchema.default([]),
});

export const taskTomlSchema = z.object({
  schema_version: z.string().optional(),
  version: z.string().optional(),
  source: z.string().optional(),
  multi_step_reward_strategy: z.enum(["mean", "final"]).default("mean"),
  artifacts: artifactsSchema.default([]),
  task: z
    .object({
      name: z.string().optional(),
      version: z.string().optional(),
      description: z.string().optional(),
      authors: z.array(z.unknown()).optional(),
      keywords: z.array(z.string()).optional(),
    })
    .prefault({}),
  metadata: z.record(z.string(), z.unknown()).default({}),
  agent: agentSchema.prefault({}),
  verifier: verifierSchema.prefault({}),
  environment: environmentSchema.prefault({}),
  solution: z.object({ env: variables.default({}) }).prefault({}),
  steps: z.array(stepSchema).optional(),
});

export type TaskToml = z.output<typeof taskTomlSchema>;
export type EnvironmentToml = z.output<typeof environmentSchema>;
export type HealthcheckToml = z.output<typeof healthcheckSchema>;
export type VerifierToml = z.output<typeof verifierSchema>;
export type AgentToml = z.output<typeof agentSchema>;
export type StepToml = z.output<typeof stepSchema>;
export type ArtifactsToml = z.output<typeof artifactsSchema>;
