import { z } from "zod";
import { BrigError } from "../../../errors.js";
import type { AttemptLimits } from "../attempt/attempt.js";
import { type AttemptResult, infrastructureClasses } from "../results/attempt-result.js";
import { taskFolderName } from "../results/run-files.js";

const limit = z.number().positive().nullable();

/** All that decides what the attempts of a run give. Two runs with the same settings and tasks can be compared and merged. */
export const batchSettingsSchema = z.strictObject({
  agent: z.strictObject({
    name: z.string(),
    model: z.string().nullable(),
    options: z
      .record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()]))
      .describe("What else decides what the agent does: the provider, the checksum of a script, a command"),
  }),
  attempts: z.int().min(1).describe("At each task"),
  limits: z
    .strictObject({
      agentTimeoutSec: limit,
      timeoutMultiplier: limit,
      // Older versions wrote null for their default, which was 1, and still older ones never extended a limit.
      timeoutExtension: z
        .number()
        .min(0)
        .nullish()
        .transform((share) => (share === null ? 1 : (share ?? 0))),
      maxTurns: limit,
      maxTokens: limit,
      maxCostUsd: limit,
      memoryHeadroom: limit,
      keepServices: z.boolean().nullable().default(null),
      memoryMb: limit.default(null),
      cpus: limit.default(null),
      pids: limit.default(null),
    })
    .describe("Null for the task's own value"),
  runtime: z.string().nullable().describe("OCI runtime; null for the engine's default"),
});
export type BatchSettings = z.infer<typeof batchSettingsSchema>;

/** The limits that the settings name, for each attempt. */
export function attemptLimits({ limits }: BatchSettings): AttemptLimits {
  return Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== null));
}

export const batchFileSchema = z.strictObject({
  schemaVersion: z.literal(1),
  brigVersion: z.string(),
  createdAt: z.iso.datetime(),
  settings: batchSettingsSchema,
  tasks: z.array(
    z.strictObject({
      name: z.string(),
      checksum: z.string(),
      parts: z.record(z.string(), z.string()).describe("The checksum of each part of the task"),
      format: z.string(),
      tags: z.array(z.string()),
    }),
  ),
});
/** `batch.json`: what a run runs. */
export type BatchFile = z.infer<typeof batchFileSchema>;

/** One field in which two runs differ. Null for what is not there. */
export interface SettingDifference {
  field: string;
  before: string | null;
  after: string | null;
}

/** The settings that differ, each under the path of its field. */
export function settingDifferences(before: BatchSettings, after: BatchSettings): SettingDifference[] {
  return fieldDifferences(fieldsOf(before), fieldsOf(after));
}

/** The fields that differ, of two lists of fields with their texts. */
export function fieldDifferences(before: FieldTexts, after: FieldTexts): SettingDifference[] {
  const [old, current] = [new Map(before), new Map(after)];
  return [...new Set([...old.keys(), ...current.keys()])]
    .map((field) => ({ field, before: old.get(field) ?? null, after: current.get(field) ?? null }))
    .filter((difference) => difference.before !== difference.after);
}

type FieldTexts = readonly (readonly [field: string, text: string])[];

/** The tasks that are missing in one of them, or have changed: then by the parts that have. */
export function taskDifferences(before: BatchFile["tasks"], after: BatchFile["tasks"]): SettingDifference[] {
  const [old, current] = [tasksByName(before), tasksByName(after)];
  const names = [...new Set([...old.keys(), ...current.keys()])];
  return names.flatMap((name) => {
    const [one, other] = [old.get(name), current.get(name)];
    if (one?.checksum === other?.checksum) return [];
    const parts = one && other ? changedParts(one, other) : [];
    if (parts.length > 0) return parts;
    return [{ field: `tasks.${name}`, before: one?.checksum ?? null, after: other?.checksum ?? null }];
  });
}

/** The names of tasks of `before` that are gone or have changed. */
export function replacedTasks(before: BatchFile["tasks"], after: BatchFile["tasks"]): string[] {
  const current = tasksByName(after);
  return before
    .filter(({ name, checksum }) => current.get(name)?.checksum !== checksum)
    .map(({ name }) => name);
}

type RunTask = BatchFile["tasks"][number];

function tasksByName(tasks: readonly RunTask[]): Map<string, RunTask> {
  return new Map(tasks.map((task) => [task.name, task]));
}

function changedParts(before: RunTask, after: RunTask): SettingDifference[] {
  const partsOf = ({ parts }: RunTask) =>
    Object.entries(parts).map(([part, checksum]) => [`tasks.${after.name}.${part}`, checksum] as const);
  return fieldDifferences(partsOf(before), partsOf(after));
}

function fieldsOf(settings: object, path = ""): [string, string][] {
  return Object.entries(settings).flatMap(([name, value]: [string, unknown]): [string, string][] => {
    const field = path === "" ? name : `${path}.${name}`;
    if (value === null || value === undefined) return [];
    return typeof value === "object" ? fieldsOf(value, field) : [[field, String(value)]];
  });
}

/** Error: `usage.invalid` for tasks such as `a/b` and `a__b`, which would share a folder. */
export function refuseEqualFolders(tasks: readonly { name: string }[]): void {
  const names = new Map<string, string>();
  for (const { name } of tasks) {
    const folder = taskFolderName(name);
    const other = names.get(folder);
    if (other !== undefined || folder === "." || folder === "..")
      throw new BrigError(
        other === undefined
          ? `a task cannot be named "${name}"`
          : `the results of the tasks ${other} and ${name} would have the same folder`,
        { code: "usage.invalid", hint: "rename one of them, or leave it out with --exclude" },
      );
    names.set(folder, name);
  }
}

const SHOWN_CHANGES = 20;

/** One line for each field, for the message of an error. */
export function changesText(changes: readonly SettingDifference[]): string {
  const lines = changes
    .slice(0, SHOWN_CHANGES)
    .map(({ field, before, after }) => `  ${field}: ${shown(before)} → ${shown(after)}`);
  const left = changes.length - lines.length;
  return [...lines, ...(left > 0 ? [`  and ${left} more`] : [])].join("\n");
}

/** The start of a checksum is enough to see that it is another one. */
function shown(value: string | null): string {
  return value === null ? "nothing" : value.replace(/^([0-9a-f]{12})[0-9a-f]{52}$/, "$1…");
}

type FailureClass = (typeof infrastructureClasses)[number];

/** Number of further tries that an attempt gets after failures of each class. */
export type RetryPolicy = Readonly<Record<FailureClass, number>>;

const DEFAULT_RETRIES = 2;
/** Building the same image again seldom helps; pulling it may. */
const IMAGE_RETRIES = 1;

const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 60_000;

/** The policy with some numbers of the user's: one for all classes, or one for each that is named. */
export function retryPolicy(
  given: { all?: number | undefined; byClass?: Partial<RetryPolicy> } = {},
): RetryPolicy {
  const usual = (name: FailureClass) =>
    given.all ?? (name === "image-failed" ? IMAGE_RETRIES : DEFAULT_RETRIES);
  const retries = infrastructureClasses.map((name) => [name, given.byClass?.[name] ?? usual(name)]);
  return Object.fromEntries(retries);
}

/** Whether the infrastructure ended this try, or kept it from its grade, and the attempt gets another one. */
export function deservesRetry({ status, failure, tries }: AttemptFate, policy: RetryPolicy): boolean {
  if (status === "cancelled" || failure === null || failure.class === "ungradable") return false;
  const earlier = tries.filter((one) => one.failure.class === failure.class).length;
  return earlier < policy[failure.class];
}

/** Work of the next try: an agent whose work is kept need not do it again. */
export function workOfNextTry({ status }: Pick<AttemptFate, "status">): "run" | "grade" {
  return status === "unscored" ? "grade" : "run";
}

type AttemptFate = Pick<AttemptResult, "status" | "failure" | "tries">;

/** Doubles with each try; `random` in [0, 1) spreads tries that failed together. */
export function retryWaitMs(triesSoFar: number, random: () => number): number {
  const longest = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (triesSoFar - 1));
  return longest * (0.5 + random() / 2);
}
