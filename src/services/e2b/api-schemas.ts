import { z } from "zod";
import { networkConfigSchema, networkUpdateShape } from "./network-rules.js";

const MAX_TIMEOUT_SECONDS = 30 * 24 * 3600;
const MAX_METADATA_BYTES = 64 * 1024;
const MAX_FORKS = 100;

const timeout = z.int().min(0).max(MAX_TIMEOUT_SECONDS);

const metadata = z
  .record(z.string(), z.string())
  .refine((values) => Buffer.byteLength(JSON.stringify(values)) <= MAX_METADATA_BYTES, {
    error: `may have at most ${MAX_METADATA_BYTES} bytes`,
  });

/** Keys that are not known are ignored: clients are newer than this, and say what they want by those that are. */
export const createSchema = z.object({
  templateID: z.string().min(1).max(512),
  timeout: timeout.nullish(),
  metadata: metadata.nullish(),
  envVars: z.record(z.string(), z.string()).nullish(),
  allow_internet_access: z.boolean().nullish(),
  network: networkConfigSchema.nullish(),
  autoPause: z.boolean().nullish(),
  autoPauseMemory: z.boolean().nullish(),
  autoResume: z.object({ enabled: z.boolean() }).nullish(),
  mcp: z.unknown().optional(),
  iam: z.unknown().optional(),
  volumeMounts: z.array(z.unknown()).nullish(),
});

export const timeoutSchema = z.object({ timeout });
export const pauseSchema = z.object({ memory: z.boolean().nullish() });
export const connectSchema = z.object({ timeout: timeout.nullish(), memory: z.boolean().nullish() });
export const refreshSchema = z.object({ duration: timeout.nullish() });
export const forkSchema = z.object({
  timeout: timeout.nullish(),
  count: z.int().min(1).max(MAX_FORKS).nullish(),
});
export const snapshotSchema = z.object({ name: z.string().min(1).max(128).nullish() });
export const networkUpdateSchema = z.object(networkUpdateShape);

const pageShape = {
  limit: z.coerce.number().int().min(1).max(1000).default(100),
  nextToken: z.string().max(512).optional(),
};

export const listSchema = z.object({
  ...pageShape,
  metadata: z.string().max(MAX_METADATA_BYTES).optional(),
  state: z.string().optional(),
  startedAfter: z.iso.datetime({ offset: true }).optional(),
  template: z.string().optional(),
  order: z.enum(["asc", "desc"]).default("desc"),
});

export const listSnapshotsSchema = z.object({
  ...pageShape,
  sandboxID: z.string().optional(),
  name: z.string().optional(),
});
