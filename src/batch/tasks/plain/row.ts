import { z } from "zod";
import { isTaskName, nameRule } from "../values/task-name.js";

const MAX_PROMPT_CHARACTERS = 1024 * 1024;

/** One row. The format is brig's own, so unknown keys are refused. */
export const rowSchema = z.strictObject({
  prompt: z
    .string()
    .refine((text) => text.trim() !== "", "it must not be empty")
    .refine(
      (text) => text.length <= MAX_PROMPT_CHARACTERS,
      `it must have at most ${MAX_PROMPT_CHARACTERS} characters`,
    )
    .describe("What the agent is asked to do"),
  check: z
    .string()
    .min(1)
    .describe(
      "A shell command, run in the working directory of a fresh container: the task is solved if it succeeds",
    ),
  name: z
    .string()
    .refine(isTaskName, nameRule)
    .optional()
    .describe("Default: the file's name and the row's number"),
  workspace: z
    .string()
    .min(1)
    .optional()
    .describe("A directory, relative to the file, whose contents are copied to the working directory"),
  image: z.string().min(1).default("brig/base").describe("The image of both containers"),
  workdir: z
    .string()
    .regex(/^\/[^/\0]/, "it must be an absolute path other than /")
    .default("/workspace")
    .describe("The working directory, of which the check gets a copy"),
  timeout_sec: z.number().positive().optional().describe("How long the agent may take; default: no limit"),
  env: z.record(z.string().regex(/^[^=\0]+$/, "it must be the name of a variable"), z.string()).default({}),
  network: z
    .string()
    .regex(/^(?:none|full|allowlist:.+)$/, "it must be none, full or allowlist:HOST,…")
    .default("none"),
  tags: z.array(z.string()).default([]),
});

export type Row = z.output<typeof rowSchema>;

/** A row as its file has it, before its fields are checked. */
export interface RawRow {
  line: number;
  value: unknown;
}
