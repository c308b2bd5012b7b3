import { z } from "zod";
import { commandShape, LONGEST_POLL_MS } from "./schemas.js";

const cells = z.int().min(1).max(65_535);
const sizeShape = { rows: cells, cols: cells };

const { argv, cwd, env, timeoutMs, endsTree } = commandShape;

export const startProcessSchema = z.strictObject({
  ...{ argv, cwd, env, timeoutMs, endsTree },
  stdin: z
    .enum(["pipe", "closed"])
    .optional()
    .describe("pipe: the input is what is sent to it. closed: end of file at once. Default: pipe"),
  pty: z
    .strictObject(sizeShape)
    .optional()
    .describe("A terminal of this size instead of pipes, with one output. Default: none"),
  mergeOutput: z
    .boolean()
    .optional()
    .describe("Whether both outputs go through one pipe, in exact order, as stdout. Default: no"),
});
/** What a process is started with. */
export type ProcessRequest = z.output<typeof startProcessSchema>;

export const processSchema = z.object({
  id: z.string(),
  argv: z.array(z.string()),
  state: z.enum(["running", "ended"]),
  exitCode: z
    .int()
    .nullable()
    .describe(
      "Null while it runs. 128 + n when signal n ended it, 124 on timeout, 127 not found, 126 not executable",
    ),
  signal: z.string().nullable().describe("The signal that ended it"),
  timedOut: z.boolean(),
});
/** A process of a sandbox as its service describes it. */
export type RemoteProcessRecord = z.infer<typeof processSchema>;

export const processListSchema = z.object({ processes: z.array(processSchema) });

const waitMs = z.coerce.number().int().min(0).max(LONGEST_POLL_MS).optional();
const after = z.coerce
  .number()
  .int()
  .min(0)
  .optional()
  .describe(
    "A cursor: where to begin, in bytes of all streams together since the process has started. Default: 0",
  );

export const waitProcessSchema = z.strictObject({
  waitMs: waitMs.describe("Answer only when the process has ended, or after so long. Default: 0"),
});

/** The most bytes of output in one answer. */
export const MAX_OUTPUT_BYTES = 4 * 1024 * 1024;

export const readOutputSchema = z.strictObject({
  after,
  waitMs: waitMs.describe("How long to wait for the first byte after the cursor, or for the end. Default: 0"),
  maxBytes: z.coerce
    .number()
    .int()
    .min(1)
    .max(MAX_OUTPUT_BYTES)
    .optional()
    .describe("The most to answer with. Default and maximum: 4 MiB"),
});

export const outputSchema = z.object({
  chunks: z.array(
    z.object({
      stream: z.enum(["stdout", "stderr", "pty"]),
      data: z.string().describe("Base64"),
    }),
  ),
  next: z.int().describe("The cursor to read on from"),
  lost: z
    .int()
    .describe("How many bytes after the given cursor are not kept any more; the chunks begin after them"),
  ended: z.boolean().describe("The process has ended, and nothing comes after next"),
});

export const attachSchema = z.strictObject({ after });

export const resizeSchema = z.strictObject(sizeShape);

export const signalSchema = z.strictObject({
  signal: z
    .string()
    .regex(/^SIG[A-Z0-9]{1,10}$/, "must be the name of a signal, such as SIGTERM")
    .describe("To its process group, or to the foreground group of its terminal"),
});
