import { z } from "zod";

/** The most rows of one answer. */
const MAX_ROWS = 100;
const USUAL_ROWS = 50;

const from = z.coerce.number().int().min(0).default(0).describe("How many rows to leave out");
const count = z.coerce
  .number()
  .int()
  .min(1)
  .max(MAX_ROWS)
  .default(USUAL_ROWS)
  .describe("The most rows to answer with");

const overviewOrders = ["newest", "oldest", "idle", "expiring"] as const;

export const readOverviewSchema = z.strictObject({
  from,
  count,
  text: z
    .string()
    .max(200)
    .default("")
    .describe("Only sandboxes with this text in their id, image, mode, network, labels or client"),
  order: z
    .enum(overviewOrders)
    .default("newest")
    .describe("What comes first. idle: the one that was used least lately; expiring: the next to expire"),
});
export type ReadOverview = z.output<typeof readOverviewSchema>;

export const readSandboxOverviewSchema = z.strictObject({ from, count });

const text = z
  .string()
  .describe("One line. Long ones are cut, and characters that hide something are shown as signs");
const ms = z.int().min(0);

const commandSchema = z.object({
  process: z.string().nullable().describe("The id of a process; null for a command of exec"),
  command: text,
  state: z.enum(["running", "ended"]),
  exitCode: z.int().nullable(),
  signal: z.string().nullable(),
  timedOut: z.boolean(),
  ageMs: ms.describe("How long ago it began"),
  tookMs: ms.nullable().describe("How long it took; null while it runs"),
});
export type CommandRow = z.infer<typeof commandSchema>;

const countsShape = {
  allowed: z.int(),
  refused: z.int().describe("By the list of hosts"),
  failed: z.int().describe("Allowed, and not reached"),
};

const rowSchema = z.object({
  id: z.string(),
  client: text,
  state: z.enum(["open", "grading", "graded", "ended"]),
  image: text,
  mode: z.string().nullable(),
  network: text,
  labels: z.array(text).describe("NAME=VALUE; among other sandboxes only the first of them"),
  labelCount: z.int(),
  ageMs: ms,
  idleForMs: ms.nullable().describe("How long nothing has used it; null while something does"),
  idleMs: ms.describe("After how long without use it is removed"),
  expiresInMs: ms,
  runningCount: z.int().describe("How many commands and processes run"),
  latest: commandSchema.nullable().describe("The one that began last"),
  egress: z.object(countsShape).nullable().describe("Connections so far; null if nobody watches them"),
  cpuPercent: z.number().nullable().describe("100 is one processor. Null if it is not known yet"),
  memoryBytes: z.number().nullable(),
  memoryLimitBytes: z.number(),
});
export type SandboxRow = z.infer<typeof rowSchema>;

export const overviewSchema = z.object({
  version: z.string(),
  status: z.enum(["ok", "draining"]),
  client: z.object({
    name: text,
    seesAll: z.boolean().describe("The rows are the sandboxes of all clients, and not only its own"),
    mayChange: z.boolean().describe("Whether the page at / offers to change what it shows"),
  }),
  places: z.object({
    taken: z.int(),
    max: z.int(),
    maxPerClient: z.int(),
    waiting: z.int().describe("Requests that wait for a place"),
    maxWaiting: z.int(),
  }),
  clients: z
    .array(
      z.object({
        name: text,
        places: z.int(),
        waiting: z.int(),
        cpus: z.number().describe("Of all its sandboxes together, as their limits allow them"),
        memoryMb: z.number(),
        minutes: z.number().describe("That its sandboxes have been there today (UTC)"),
        quota: z
          .object({
            maxSandboxes: z.int().nullable(),
            cpus: z.number().nullable(),
            memoryMb: z.int().nullable(),
            minutesPerDay: z.int().nullable(),
          })
          .describe("What it may have of these; null where only the limits of all clients count"),
      }),
    )
    .describe("Those that have places or wait for one; only itself for a client that does not see all"),
  total: z.int().describe("How many sandboxes there are to see"),
  matching: z.int().describe("How many of them have the text"),
  sandboxes: z.array(rowSchema),
});
export type Overview = z.infer<typeof overviewSchema>;

export const sandboxOverviewSchema = z.object({
  client: overviewSchema.shape.client,
  sandbox: rowSchema,
  commandCount: z.int().describe("How many are known: those that run, and the latest that have ended"),
  commands: z.array(commandSchema).describe("Those that run come first, each group from the newest"),
  hosts: z.array(
    z.object({
      host: text.nullable().describe("Null stands for all hosts beyond the first 200"),
      ...countsShape,
      latestMs: ms.describe("How long ago the latest attempt was"),
    }),
  ),
});
export type SandboxOverview = z.infer<typeof sandboxOverviewSchema>;
