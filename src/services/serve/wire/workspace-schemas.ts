import { z } from "zod";
import { FILE_TYPES } from "../../../sandbox/index.js";
import { sandboxSchema } from "./schemas.js";

const MAX_FORKS = 256;

export const forkSchema = z.strictObject({
  count: z
    .int()
    .min(1)
    .max(MAX_FORKS)
    .default(1)
    .describe("How many. Each takes a place; none is made if there are too few"),
});

export const forkListSchema = z.object({ sandboxes: z.array(sandboxSchema) });

export const takeSnapshotSchema = z.strictObject({
  name: z.string().min(1).max(256).optional().describe("For people, and need not be unique. Default: its id"),
});

export const snapshotSchema = z.object({ id: z.string(), name: z.string() });
/** A snapshot as its service describes it. */
export type RemoteSnapshotRecord = z.infer<typeof snapshotSchema>;

export const snapshotListSchema = z.object({ snapshots: z.array(snapshotSchema) });

const bytes = z.coerce.number().int().min(0);

export const readDiffSchema = z.strictObject({
  patches: z.enum(["true", "false"]).optional().describe("Whether to make patches. Default: true"),
  maxFileBytes: bytes
    .max(16 * 1024 * 1024)
    .optional()
    .describe("A larger file gets no patch. Default: 1 MiB"),
  maxPatchBytes: bytes
    .max(16 * 1024 * 1024)
    .optional()
    .describe("When the patches together are larger, the remaining changes get none. Default: 16 MiB"),
});

const versionSchema = z
  .object({
    type: z.enum(FILE_TYPES),
    mode: z.int().describe("Permission bits"),
    sizeBytes: z.int(),
  })
  .nullable()
  .describe("Null if nothing is there");

export const diffSchema = z.object({
  changes: z.array(
    z.object({
      path: z.string().describe("Relative to the workspace. Decoded; what is not UTF-8 is replaced"),
      pathBase64: z.string().describe("Its bytes"),
      change: z.enum(["added", "modified", "deleted"]),
      before: versionSchema,
      after: versionSchema,
      patch: z.string().nullable().describe("In git's format; null where there is none"),
      isBinary: z.boolean(),
    }),
  ),
  count: z.int(),
  tooLarge: z.int().describe("How many changed files have no patch because of their size"),
  notEntered: z.int().describe("How many directories could not be read"),
});
export type RemoteDiffAnswer = z.infer<typeof diffSchema>;
