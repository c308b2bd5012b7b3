import { z } from "zod";
import { attemptResultSchema, attemptStages } from "../../../batch/index.js";
import { GONE_REASONS } from "../../../errors.js";
import type { CallCause } from "../../../sandbox/index.js";
import { FILE_TYPES, MAX_TIMEOUT_MS, SANDBOX_MODES } from "../../../sandbox/index.js";
import { fullDiskSchema } from "./error-body.js";
import { secretsSchema, setupSchema } from "./opening-schemas.js";
import { createdNetworkSchema, labelsSchema } from "./setting-schemas.js";

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

const causesSchema = z
  .array(causeSchema)
  .describe(
    "What the kernel or the service has counted of why the command failed. Empty if that is nothing, and for a command that did not fail",
  );

const MAX_LIFE_MS = 7 * 24 * 3_600_000;
const MAX_WAIT_MS = 10 * 60_000;
const MAX_KEPT_BYTES = 8 * 1024 * 1024;
/** The most of a file that is in memory at once, and that a client may ask for by its length. */
export const MAX_FILE_BYTES = 64 * 1024 * 1024;
/** The most entries of a directory in one answer. */
export const MAX_ENTRIES = 10_000;

const name = z.string().regex(/^[^=\0]+$/, "must be the name of a variable");
const value = z.string().regex(/^[^\0]*$/, "must not contain NUL");
const absolutePath = z
  .string()
  .max(4096)
  .regex(/^\/[^\0]*$/, "must be an absolute path without NUL");

const waitMsSchema = z
  .int()
  .min(0)
  .max(MAX_WAIT_MS)
  .optional()
  .describe("How long to wait for a place when all are taken. Default: 0, which is refused with 429 at once");

export const createSandboxSchema = z.strictObject({
  task: z
    .string()
    .min(1)
    .optional()
    .describe(
      "One of the service's tasks, by its name or by the last part of it: the sandbox is the task's container, and can be graded. Not together with image, imageOfTask, mode, network, user or limits",
    ),
  image: z.string().min(1).max(512).optional().describe("Default: the service's"),
  imageOfTask: z
    .string()
    .min(1)
    .optional()
    .describe(
      "In place of image: the image of one of the service's tasks, built if that is needed. Nothing else is the task's",
    ),
  mode: z.enum(SANDBOX_MODES).optional().describe("What commands may do. Default: the service's"),
  network: createdNetworkSchema
    .optional()
    .describe(
      "none, full, allowlist:HOST,…, or learn for every public host, of which GET …/egress then proposes a list. Only none, the default, is there unless the service allows more",
    ),
  user: z
    .string()
    .min(1)
    .max(256)
    .optional()
    .describe("A user of the image, by name or number. Default: the one of the mode"),
  workingDirectory: absolutePath
    .optional()
    .describe(
      "Where commands start. Default: the image's, else /. The mode danger-full-access makes it, the others need it to be there. With a workspace, it is the workspace, by default /workspace",
    ),
  workspaceKind: z
    .enum(["none", "overlay"])
    .optional()
    .describe(
      "overlay is an empty copy-on-write workspace at workingDirectory, which can be forked, stored as a snapshot and compared. Default: none, or overlay with snapshot",
    ),
  snapshot: z
    .string()
    .min(1)
    .max(64)
    .optional()
    .describe(
      "One of the client's snapshots: the workspace has its files, by default where they were. Nothing else of the sandbox it was taken of comes along",
    ),
  env: z.record(name, value).optional().describe("Variables for all commands"),
  secrets: secretsSchema.optional(),
  setup: setupSchema.optional(),
  labels: labelsSchema.optional(),
  limits: z
    .strictObject({
      memoryMb: z
        .int()
        .min(64)
        .max(1_048_576)
        .optional()
        .describe("Memory in MiB; the kernel kills above it"),
      cpus: z.number().min(0.01).max(1024).optional().describe("Processors"),
      pids: z.int().min(16).max(65_536).optional().describe("Processes and threads at once"),
    })
    .optional()
    .describe("Default: those of the mode"),
  idleMs: z
    .int()
    .min(100)
    .max(MAX_LIFE_MS)
    .optional()
    .describe("The sandbox is removed after so long without a call. Default and maximum: the service's"),
  maxLifeMs: z
    .int()
    .min(100)
    .max(MAX_LIFE_MS)
    .optional()
    .describe("The sandbox is removed after so long in any case. Default and maximum: the service's"),
  waitMs: waitMsSchema,
});
/** What a sandbox of a service is to be; nothing is required. */
export type RemoteSandboxOptions = z.input<typeof createSandboxSchema>;

export const sandboxSchema = z.object({
  id: z.string(),
  state: z
    .enum(["open", "grading", "graded", "ended"])
    .describe(
      "Only a sandbox of a task is graded; it takes no more calls then. One whose container has ended by itself takes none either, and no place",
    ),
  image: z.string().describe("By name, or by id for a task"),
  mode: z.string().nullable().describe("Null for a task, whose limits are its own"),
  network: z.string().describe("none, full, learn or allowlist:HOST,…, as it is at the moment"),
  task: z.string().nullable(),
  instruction: z.string().nullable().describe("What the task asks for"),
  workingDirectory: z.string(),
  // Those of a client of another protocol have its limits.
  labels: z.record(z.string(), z.string()).describe("What its client says about it"),
  createdAt: z.iso.datetime(),
  idleMs: z.int(),
  expiresAt: z.iso.datetime().describe("It is removed then in any case"),
});
/** A sandbox as its service describes it. */
export type RemoteSandboxRecord = z.infer<typeof sandboxSchema>;

export const sandboxListSchema = z.object({ sandboxes: z.array(sandboxSchema) });

const encoding = z
  .enum(["utf8", "base64"])
  .optional()
  .describe("How bytes are written in JSON. utf8, the default, replaces what is not valid");

export const commandShape = {
  argv: z
    .array(z.string().regex(/^[^\0]*$/, "must not contain NUL"))
    .min(1)
    .max(4096)
    .describe("The program and its arguments. No shell reads them"),
  cwd: absolutePath.optional().describe("Default: the sandbox's working directory"),
  env: z
    .record(name, value.nullable())
    .optional()
    .describe("Added to the sandbox's variables; null removes one"),
  timeoutMs: z
    .int()
    .min(1)
    .max(MAX_TIMEOUT_MS)
    .optional()
    .describe("The whole process tree is killed after so long"),
  stdin: z.string().optional().describe("What the command reads, then end of file"),
  stdinEncoding: encoding,
  endsTree: z
    .boolean()
    .optional()
    .describe("Whether processes that the command leaves behind are ended. Default: they run on"),
};

export const execStreamSchema = z.strictObject(commandShape);

export const execSchema = z.strictObject({
  ...commandShape,
  encoding,
  maxOutputBytes: z
    .int()
    .min(0)
    .max(MAX_KEPT_BYTES)
    .default(1024 * 1024)
    .describe("The most to keep of each output, half from each end"),
});

const endShape = {
  exitCode: z
    .int()
    .describe("128 + n when signal n ended it, 124 on timeout, 127 not found, 126 not executable"),
  signal: z.string().nullable(),
  durationMs: z.number(),
  timedOut: z.boolean(),
  outOfMemory: z.boolean().describe("The kernel killed a process because memory ran out"),
  treeEnded: z.boolean(),
  causes: causesSchema,
};

export const execResultSchema = z.object({
  ...endShape,
  stdout: z.string(),
  stderr: z.string(),
  output: z.string().describe("Both in the order of arrival"),
  truncated: z.boolean().describe("maxOutputBytes has cut something"),
  omittedBytes: z.object({ stdout: z.int(), stderr: z.int() }),
});
/** What a command did, with its output as text. */
export type RemoteExecRecord = z.infer<typeof execResultSchema>;

const exitLineSchema = z.object({ type: z.literal("exit"), ...endShape });

/** One line of a streamed command. The last one is of type `exit` or `error`. */
export const execLineSchema = z.union([
  z.object({ type: z.enum(["stdout", "stderr"]), data: z.string().describe("Base64") }),
  exitLineSchema,
  z.object({
    type: z.literal("error"),
    code: z.string(),
    message: z.string(),
    hint: z.string().optional(),
    errno: z.string().optional(),
    reason: z.enum(GONE_REASONS).optional(),
    disk: fullDiskSchema.optional(),
  }),
]);
export type ExecLine = z.infer<typeof execLineSchema>;
/** How a streamed command ended. */
export type RemoteExit = Omit<z.infer<typeof exitLineSchema>, "type">;

export const filePath = absolutePath.describe(
  "Absolute, as the sandbox sees it: the kernel resolves it inside",
);

export const readFileSchema = z.strictObject({
  path: filePath,
  offset: z.coerce.number().int().min(0).optional().describe("In bytes. Default: 0"),
  length: z.coerce
    .number()
    .int()
    .min(0)
    .max(MAX_FILE_BYTES)
    .optional()
    .describe("In bytes. Default: to the end"),
});

export const flag = z.enum(["true", "false"]).optional();

export const octalMode = z.string().regex(/^[0-7]{3,4}$/, "must be octal, such as 755");

export const writeFileSchema = z.strictObject({
  path: filePath,
  mode: octalMode.optional().describe("Of a new file, octal. Default: 644"),
  parents: flag.describe("Whether missing directories above it are made"),
});

export const removeFileSchema = z.strictObject({ path: filePath, recursive: flag, force: flag });

export const listEntriesSchema = z.strictObject({ path: filePath });

export const entryListSchema = z.object({
  entries: z.array(
    z.object({
      name: z.string().describe("Decoded; what is not UTF-8 is replaced"),
      nameBase64: z.string().describe("Its bytes"),
      type: z.enum(FILE_TYPES),
    }),
  ),
  truncated: z.boolean().describe(`The directory has more than ${MAX_ENTRIES} entries`),
});
export type EntryList = z.infer<typeof entryListSchema>;

export const LONGEST_POLL_MS = 60_000;

const agentSchema = z
  .union([
    z.enum(["oracle", "nop"]),
    z.strictObject({
      command: z
        .string()
        .min(1)
        .max(65_536)
        .describe("A command of the container's shell; BRIG_INSTRUCTION_FILE has the instruction"),
    }),
  ])
  .describe("What works on the task. Default: the agent that the service was started with");

export const createEpisodeSchema = z.strictObject({
  task: z.string().min(1).optional().describe("One of the service's tasks. Either this or instruction"),
  instruction: z
    .string()
    .min(1)
    .max(1_048_576)
    .optional()
    .describe("What the agent is to do, without a task"),
  image: z.string().min(1).max(512).optional().describe("With instruction. Default: the service's"),
  check: z
    .string()
    .min(1)
    .max(65_536)
    .optional()
    .describe("With instruction: a shell command that succeeds, in a fresh container, if the agent did it"),
  agent: agentSchema.optional(),
  timeoutMs: z
    .int()
    .min(100)
    .max(7 * 24 * 3_600_000)
    .optional()
    .describe("For the agent. Default: the task's own"),
  maxTurns: z.int().min(1).optional().describe("Requests to the model"),
  maxTokens: z.int().min(1).optional(),
  waitMs: waitMsSchema,
});
/** What an episode is to be: a task and an agent, or an instruction and a check. */
export type EpisodeOptions = z.input<typeof createEpisodeSchema>;

export const episodeSchema = z.object({
  id: z.string(),
  task: z.string(),
  agent: z.string(),
  status: z
    .enum(["running", "grading", "ended", "failed"])
    .describe("ended: there is a result. failed: there is an error instead"),
  stage: z.enum(attemptStages).nullable(),
  createdAt: z.iso.datetime(),
  result: attemptResultSchema.nullable(),
  error: z
    .object({ code: z.string(), message: z.string(), hint: z.string().optional() })
    .nullable()
    .describe("What has to be mended before the task can be run"),
});
/** An episode as its service describes it. */
export type Episode = z.infer<typeof episodeSchema>;

export const episodeListSchema = z.object({ episodes: z.array(episodeSchema) });

export const pollSchema = z.strictObject({
  waitMs: z.coerce
    .number()
    .int()
    .min(0)
    .max(LONGEST_POLL_MS)
    .optional()
    .describe("Answer only when the episode has ended, or after so long. Default: 0"),
});

export const taskListSchema = z.object({
  tasks: z.array(z.object({ name: z.string(), instruction: z.string() })),
});

export const healthSchema = z.object({
  status: z.enum(["ok", "draining"]),
  version: z.string(),
  sandboxes: z.int().describe("Places that are taken, those of episodes included"),
  maxSandboxes: z.int(),
});
/** How a service is, and what places it has. */
export type ServiceHealth = z.infer<typeof healthSchema>;
