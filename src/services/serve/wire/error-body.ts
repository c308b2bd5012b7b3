import { z } from "zod";
import { GONE_REASONS } from "../../../errors.js";

export const fullDiskSchema = z.object({
  owner: z.enum(["engine", "brig"]).describe("The container engine's disk, or that with brig's own files"),
  path: z.string().nullable().describe("A directory on it; null if the engine is on another machine"),
  freeBytes: z.number().nullable().describe("Null if it is unknown"),
  freeFiles: z.number().nullable().describe("How many files can still be made; null if it is unknown"),
});

export const errorBodySchema = z
  .object({
    error: z.object({
      code: z.string().describe("Stable, for programs: see docs/errors.md"),
      message: z.string().describe("For people"),
      hint: z.string().optional().describe("What to do about it"),
      errno: z.string().optional().describe("The system call's error, such as EACCES"),
      reason: z.enum(GONE_REASONS).optional().describe("With sandbox.gone: why the sandbox has ended"),
      disk: fullDiskSchema.optional().describe("If a disk was full"),
    }),
  })
  .describe("Why a request was not answered as it asked");

export type ErrorBody = z.infer<typeof errorBodySchema>;
