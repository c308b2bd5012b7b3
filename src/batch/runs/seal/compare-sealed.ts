import { attemptKey } from "../results/run-files.js";
import type { DescribedRun } from "./described-run.js";
import type { RunTree } from "./run-tree.js";
import type { SealedAttempt, SealedRun, Statement } from "./statement.js";

/** One thing that is not as it was sealed. Null for what is not there. */
export interface SealDifference {
  field: string;
  sealed: string | null;
  found: string | null;
}

/** Everything in which a run differs from what was sealed: files first, then what they say, field by field. */
export function compareSealed(
  { subject, predicate }: Statement,
  { tree, described }: { tree: RunTree; described: DescribedRun },
): SealDifference[] {
  const sealedFiles = subject.map(({ name, digest, annotations }): [string, string] => [
    `files.${name}`,
    `${digest.sha256}, ${annotations.sizeBytes} bytes`,
  ]);
  const foundFiles = [
    ...tree.files.map(({ name, digest, annotations }): [string, string] => [
      `files.${name}`,
      `${digest.sha256}, ${annotations.sizeBytes} bytes`,
    ]),
    ...tree.others.map((name): [string, string] => [`files.${name}`, "not a file that can be read"]),
  ];
  return [
    ...differences(sealedFiles, foundFiles),
    ...differences(
      [...runFields(predicate.run), ...predicate.attempts.flatMap(attemptFields)],
      [
        ...(described.run === null ? [] : runFields(described.run)),
        ...described.attempts.flatMap(attemptFields),
      ],
    ),
    ...described.contradictions.map((key) => ({
      field: `attempts.${key}`,
      sealed: "result.json as in results.jsonl",
      found: "they contradict each other",
    })),
  ];
}

function differences(
  sealed: readonly (readonly [string, string])[],
  found: readonly (readonly [string, string])[],
): SealDifference[] {
  const [before, after] = [new Map(sealed), new Map(found)];
  return [...new Set([...before.keys(), ...after.keys()])]
    .map((field) => ({ field, sealed: before.get(field) ?? null, found: after.get(field) ?? null }))
    .filter((one) => one.sealed !== one.found);
}

function runFields({ settings, tasks }: SealedRun): [string, string][] {
  return [
    ...fieldsOf(settings, "settings"),
    ...tasks.flatMap((task) => fieldsOf(task, `tasks.${task.name}`)),
  ];
}

function attemptFields(attempt: SealedAttempt): [string, string][] {
  return fieldsOf(attempt, `attempts.${attemptKey(attempt)}`);
}

function fieldsOf(value: unknown, field: string): [string, string][] {
  if (typeof value !== "object" || value === null) return [[field, JSON.stringify(value)]];
  return Object.entries(value).flatMap(([name, each]) => fieldsOf(each, `${field}.${name}`));
}
