import { z } from "zod";
import type { CallCause } from "../../../sandbox/index.js";

const fullPlaceShape = {
  path: z.string(),
  lacks: z.enum(["bytes", "files"]),
  limit: z.number().min(0).describe("How many bytes or files there can be at all"),
  wasFull: z.boolean().describe("It was full when the command began, and files came or went there meanwhile"),
};

const causeSchema = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("memory-limit").describe("A process was killed at the memory limit of the sandbox"),
    limitBytes: z.number().min(0).nullable(),
  }),
  z.object({
    kind: z.literal("machine-memory").describe("The same, because the machine had no more memory"),
  }),
  z.object({
    kind: z.literal("process-limit").describe("A process or thread could not be started"),
    limit: z.number().min(0).nullable().describe("Null for a limit outside of the sandbox"),
  }),
  z.object({
    kind: z
      .literal("cpu-limit")
      .describe("The time limit has passed while the limit of processors slowed the command down"),
    cpus: z.number().min(0).nullable(),
    share: z.number().min(0).max(1).describe("The part of its time in which they were used up"),
  }),
  z.object({
    kind: z.literal("full-directory").describe("A directory in memory is full"),
    ...fullPlaceShape,
  }),
  z.object({
    kind: z.literal("disk-full").describe("The disk that holds the directory is full"),
    ...fullPlaceShape,
  }),
  z.object({
    kind: z.literal("network-rule").describe("A list of allowed hosts refused a connection"),
    host: z.string(),
    port: z.number().nullable(),
    denial: z.string(),
  }),
]) satisfies z.ZodType<CallCause>;

export const causesSchema = z
  .array(causeSchema)
  .describe(
    "What the kernel or the service has counted of why the command failed. Empty if that is nothing, and for a command that did not fail",
  );
