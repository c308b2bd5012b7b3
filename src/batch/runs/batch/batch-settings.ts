import { z } from "zod";
import type { AttemptLimits } from "../attempt/attempt.js";

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
  const [old, current] = [fieldsOf(before), fieldsOf(after)];
  const fields = [...new Set([...old.keys(), ...current.keys()])];
  return fields
    .map((field) => ({ field, before: old.get(field) ?? null, after: current.get(field) ?? null }))
    .filter((difference) => difference.before !== difference.after);
}

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
  return [...new Set([...Object.keys(before.parts), ...Object.keys(after.parts)])]
    .map((part) => ({
      field: `tasks.${after.name}.${part}`,
      before: before.parts[part] ?? null,
      after: after.parts[part] ?? null,
    }))
    .filter((part) => part.before !== part.after);
}

function fieldsOf(settings: object, path = ""): Map<string, string> {
  return new Map(
    Object.entries(settings).flatMap(([name, value]: [string, unknown]): [string, string][] => {
      const field = path === "" ? name : `${path}.${name}`;
      if (value === null || value === undefined) return [];
      return typeof value === "object" ? [...fieldsOf(value, field)] : [[field, String(value)]];
    }),
  );
}
