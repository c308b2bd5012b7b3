import { z } from "zod";
import { FILE_TYPES } from "../../../sandbox/index.js";
import { execLineSchema, filePath, flag, octalMode } from "./schemas.js";

/** Which part of a file is asked for. */
export const rangeHeadersSchema = z.object({
  range: z
    .string()
    .max(256)
    .optional()
    .describe(
      "bytes=FIRST-LAST, bytes=FIRST- or bytes=-COUNT, which is answered with 206; several ranges are answered with the whole file",
    ),
});

export const statFileSchema = z.strictObject({
  path: filePath,
  followSymlinks: flag.describe("Whether what a link leads to is described. Default: true"),
});

export const fileStatSchema = z.object({
  type: z.enum(FILE_TYPES),
  sizeBytes: z.number(),
  mode: z.int().describe("Permission bits, as a number"),
  modifiedMs: z.number().describe("Since 1970"),
  uid: z.int(),
  gid: z.int(),
  linkTarget: z.string().nullable().describe("Of a symbolic link that was not followed"),
});

export const makeDirectorySchema = z.strictObject({
  path: filePath,
  recursive: z
    .boolean()
    .optional()
    .describe("Whether missing directories above it are made, and one that is there is fine"),
  mode: octalMode.optional().describe("Octal. Default: 777, without what the umask forbids"),
});

export const moveFileSchema = z.strictObject({ from: filePath, to: filePath });

export const watchFilesSchema = z.strictObject({
  path: filePath,
  recursive: flag.describe("Whether directories below it are watched, too. Default: false"),
});

/** One line of a watch. The first one is of type `start`; one of type `error` is the last. */
export const fileChangeLineSchema = z.union([
  z.object({ type: z.literal("start") }),
  z.object({
    type: z.enum(["create", "write", "remove", "rename", "chmod"]),
    path: z
      .string()
      .describe("Relative to the directory, and empty for itself; what is not UTF-8 is replaced"),
    pathBase64: z.string().describe("Its bytes"),
  }),
  execLineSchema.options[2],
]);
export type FileChangeLine = z.infer<typeof fileChangeLineSchema>;

export const archiveSchema = z.strictObject({ path: filePath });
