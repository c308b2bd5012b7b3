import { createHash } from "node:crypto";
import { z } from "zod";
import { attemptStages } from "../runs/attempt/attempt.js";
import { type BatchSettings, batchSettingsSchema } from "../runs/batch/batch-settings.js";

const sha256 = z.string().regex(/^[0-9a-f]{64}$/);
const runId = z.string().regex(/^[0-9a-f]{16}$/);

/** Settings that all attempts of a run share. They lie in the store, so that commands and scripts are not in Redis. */
export const runSpecSchema = z.strictObject({
  schemaVersion: z.literal(1),
  settings: batchSettingsSchema,
  agent: z.strictObject({
    flag: z.string().describe("As `--agent` has it, but without the file of a script"),
    script: z.string().nullable().describe("The text of a scripted model"),
  }),
});
export interface RunSpec extends z.infer<typeof runSpecSchema> {
  settings: BatchSettings;
}

/** An attempt in the queue. It names what lies in the store by checksum, and has no secret. */
export const attemptJobSchema = z.strictObject({
  schemaVersion: z.literal(1),
  brigVersion: z.string(),
  run: runId,
  spec: sha256,
  package: z.strictObject({ sha256, path: z.string().min(1).describe("Of the task in the package") }),
  task: z.string().min(1),
  taskChecksum: sha256,
  attempt: z.int().min(1),
  /** Counts from 1. */
  try: z.int().min(1),
});
export type AttemptJob = z.infer<typeof attemptJobSchema>;

/** Outcome of a job. */
export const jobOutcomeSchema = z.discriminatedUnion("kind", [
  /** The folder of the attempt is in the store. */
  z.strictObject({ kind: z.literal("result"), worker: z.string() }),
  z.strictObject({ kind: z.literal("cancelled"), worker: z.string() }),
  /** The worker cannot run any attempt of this run, or of this task. */
  z.strictObject({
    kind: z.literal("fault"),
    worker: z.string(),
    message: z.string(),
    hint: z.string().nullable(),
  }),
]);
export type JobOutcome = z.infer<typeof jobOutcomeSchema>;

export const jobProgressSchema = z.strictObject({
  stage: z.enum(attemptStages),
});

/** Record that a worker repeatedly writes about itself. */
export const workerRecordSchema = z.strictObject({
  name: z.string(),
  pid: z.int(),
  brigVersion: z.string(),
  slots: z.int().min(1),
  startedAt: z.iso.datetime(),
  isDraining: z.boolean(),
});
export type WorkerRecord = z.infer<typeof workerRecordSchema>;

/** Record that a submitter writes about its run. */
export const runRecordSchema = z.strictObject({
  run: runId,
  host: z.string(),
  folder: z.string(),
  startedAt: z.iso.datetime(),
});
export type RunRecord = z.infer<typeof runRecordSchema>;

/** Returns the same id for each try of an attempt under the same settings, so that submitting it again finds what there is. */
export function jobIdOf({ run, spec, task, taskChecksum, attempt, try: number }: AttemptJob): string {
  const text = JSON.stringify([spec, task, taskChecksum, attempt, number]);
  return `${run}-${createHash("sha256").update(text).digest("hex").slice(0, 32)}`;
}

/** The run that a job is of, by its id. */
export function runOfJob(jobId: string): string {
  return jobId.slice(0, jobId.indexOf("-"));
}

/** The names of objects in the store. */
export const storeKeys = {
  package: (checksum: string) => `packages/${checksum}.tar.gz`,
  spec: (run: string, checksum: string) => `runs/${run}/${checksum}.json`,
  result: (jobId: string) => `runs/${runOfJob(jobId)}/${jobId.slice(jobId.indexOf("-") + 1)}.tar.gz`,
};
