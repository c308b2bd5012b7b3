import { z } from "zod";
import { batchFileSchema } from "../batch/batch-settings.js";

/** File in the folder of a sealed run. */
export const SEAL_FILE = "seal.json";

export const STATEMENT_TYPE = "https://in-toto.io/Statement/v1";
export const PREDICATE_TYPE = "urn:brigbox:batch-run:v1";

const sha256 = z.string().regex(/^[0-9a-f]{64}$/);

const subjectSchema = z.strictObject({
  name: z.string().describe("A file, relative to the folder of the run"),
  digest: z.strictObject({ sha256 }),
  annotations: z.strictObject({ sizeBytes: z.int().min(0) }),
});

const attemptSchema = z.strictObject({
  task: z.string(),
  attempt: z.int().min(1),
  taskChecksum: z.string(),
  status: z.string(),
  reward: z.number().nullable(),
  rewards: z.record(z.string(), z.number()),
  images: z
    .strictObject({ agent: z.string().nullable(), verifier: z.array(z.string().nullable()) })
    .describe("Image digests: of the agent's container, and of that of the tests of each step"),
  policy: z
    .strictObject({ agent: z.boolean().nullable(), verifier: z.array(z.boolean().nullable()) })
    .describe("Whether the kernel confirmed all of the policy of that container; null without a proof"),
});

const runSchema = batchFileSchema.pick({ settings: true, tasks: true });

/** Statements of a sealed run, apart from its files. */
const predicateSchema = z.strictObject({
  brigVersion: z.string(),
  sealedAt: z.iso.datetime(),
  publicKey: z.string().describe("PEM, of the key that signed this"),
  run: runSchema,
  attempts: z.array(attemptSchema),
});

/** The signed document: an in-toto statement. */
export const statementSchema = z.strictObject({
  _type: z.literal(STATEMENT_TYPE),
  subject: z.array(subjectSchema),
  predicateType: z.literal(PREDICATE_TYPE),
  predicate: predicateSchema,
});
export type Statement = z.infer<typeof statementSchema>;
export type SealedFile = z.infer<typeof subjectSchema>;
export type SealedAttempt = z.infer<typeof attemptSchema>;
export type SealedRun = z.infer<typeof runSchema>;
