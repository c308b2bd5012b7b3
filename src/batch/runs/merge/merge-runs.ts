import { createHash, randomBytes } from "node:crypto";
import { readdir, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { BrigError } from "../../../errors.js";
import { errnoOf } from "../../../lib/errno.js";
import { makeDirectory } from "../../../lib/files/make-directory.js";
import { readVersion } from "../../../version.js";
import { isTaskName, nameRule } from "../../tasks/values.js";
import {
  type BatchFile,
  changesText,
  refuseEqualFolders,
  settingDifferences,
  taskDifferences,
} from "../batch/batch-settings.js";
import { type Run, RunStore, requireRun } from "../batch/run-store.js";
import { outcomeOf } from "../results/attempt-outcome.js";
import type { AttemptResult } from "../results/attempt-result.js";
import { readResults } from "../results/results-file.js";
import { copyAttempt } from "./copy-attempt.js";

export interface MergeOptions {
  /** Must not exist, or be an empty directory. */
  out: string;
  signal: AbortSignal;
  now: () => Date;
  /** Called after each attempt. */
  onMerged?: ((attempts: number) => void) | undefined;
}

export interface Merged extends Run {
  /** Attempts that an earlier one of the runs has as well. */
  duplicates: number;
  /** Attempts of which a run has a result, but no files. */
  withoutFiles: number;
}

/**
 * Makes one run of several. Attempts at a task are numbered anew, in the order of the runs, and each counts once,
 * however many of the runs have it. The runs stay as they are. Errors: `usage.invalid` for a folder that is no
 * run, for runs of different settings, and for an `out` that contains something; the signal's reason.
 */
export async function mergeRuns(
  folders: readonly [string, ...string[]],
  options: MergeOptions,
): Promise<Merged> {
  const { out } = options;
  const [first, ...others] = folders;
  const runs: [NamedBatch, ...NamedBatch[]] = [await namedBatch(first)];
  for (const folder of others) runs.push(await namedBatch(folder));
  const tasks = tasksTogether(runs);
  await refuseContent(out);
  const unfinished = `${out}.${randomBytes(6).toString("hex")}.new`;
  try {
    await makeDirectory(unfinished);
    const merged = await fill(new RunStore(unfinished), { runs, tasks, options });
    await rename(unfinished, out);
    return merged;
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true });
    const errno = errnoOf(error);
    if (errno === undefined) throw error;
    throw new BrigError(`the merged run cannot be written to ${JSON.stringify(dirname(out))}: ${errno}`, {
      code: "usage.invalid",
      hint: "name another folder, with enough room",
      cause: error,
    });
  }
}

async function namedBatch(folder: string): Promise<NamedBatch> {
  return { folder, batch: await requireRun(folder) };
}

interface Filling {
  runs: readonly [NamedBatch, ...NamedBatch[]];
  tasks: BatchFile["tasks"];
  options: MergeOptions;
}

async function fill(store: RunStore, { runs, tasks, options }: Filling): Promise<Merged> {
  const numbers = new Map(tasks.map(({ name }) => [name, 0]));
  const seen = new Set<string>();
  const merged: Omit<Merged, "batch"> = { outcomes: [], duplicates: 0, withoutFiles: 0 };
  await using results = await store.openResults();
  for (const { folder, batch } of runs) {
    const own = new Set(batch.tasks.map(({ name }) => name));
    const from = new RunStore(folder);
    for await (const result of readResults(from.resultsPath, ({ task }) => own.has(task))) {
      options.signal.throwIfAborted();
      const identity = identityOf(result);
      if (seen.has(identity)) {
        merged.duplicates++;
        continue;
      }
      seen.add(identity);
      const attempt = (numbers.get(result.task) ?? 0) + 1;
      numbers.set(result.task, attempt);
      if (!(await copyAttempt(from, store, { result, attempt }))) merged.withoutFiles++;
      await results.append({ ...result, attempt });
      merged.outcomes.push(outcomeOf({ ...result, attempt }));
      options.onMerged?.(merged.outcomes.length);
    }
  }
  const batch = batchOf({ runs, tasks, options }, Math.max(...numbers.values()));
  await store.writeBatch(batch);
  return { ...merged, batch };
}

function batchOf({ runs, tasks, options }: Filling, most: number): BatchFile {
  const [{ batch: first }] = runs;
  const attempts = Math.max(most, ...runs.map(({ batch }) => batch.settings.attempts));
  return {
    schemaVersion: 1,
    brigVersion: readVersion(),
    createdAt: options.now().toISOString(),
    settings: { ...first.settings, attempts },
    tasks,
  };
}

/** The number of an attempt says nothing about which it is: it is another one in another run. */
function identityOf({ attempt: _, ...result }: AttemptResult): string {
  return createHash("sha256").update(JSON.stringify(result)).digest("base64");
}

async function refuseContent(out: string): Promise<void> {
  const content = await readdir(out).catch((error: unknown) => {
    if (errnoOf(error) === "ENOENT") return [];
    if (errnoOf(error) === "ENOTDIR") return [""];
    throw error;
  });
  if (content.length === 0) return;
  throw new BrigError(`${JSON.stringify(out)} exists, and a merged run overwrites nothing`, {
    code: "usage.invalid",
    hint: "name a new folder",
  });
}

interface NamedBatch {
  folder: string;
  batch: BatchFile;
}

/**
 * The tasks of all runs. The number of attempts may differ, and so may which tasks there are. Error: `usage.invalid`
 * if anything else does that decides what attempts give.
 */
function tasksTogether(runs: readonly [NamedBatch, ...NamedBatch[]]): BatchFile["tasks"] {
  const [first] = runs;
  const tasks = new Map<string, BatchFile["tasks"][number]>();
  for (const { folder, batch } of runs) {
    const { attempts: _, ...settings } = batch.settings;
    const changed = settingDifferences(
      { ...settings, attempts: first.batch.settings.attempts },
      first.batch.settings,
    );
    const known = batch.tasks.filter(({ name }) => tasks.has(name));
    changed.push(
      ...taskDifferences(
        known,
        known.flatMap(({ name }) => tasks.get(name) ?? []),
      ),
    );
    if (changed.length > 0) throw differentRuns(folder, changesText(changed));
    for (const task of batch.tasks)
      if (!tasks.has(task.name)) tasks.set(checkedName(task.name, folder), task);
  }
  const all = [...tasks.values()];
  refuseEqualFolders(all);
  return all;
}

function differentRuns(folder: string, changes: string): BrigError {
  return new BrigError(
    `${JSON.stringify(folder)} is of other tasks or settings than the runs before it:\n${changes}`,
    {
      code: "usage.invalid",
      hint: "their results cannot be counted together; compare them with brig batch diff",
    },
  );
}

/** The name becomes that of a folder, and the run may come from another machine. */
function checkedName(name: string, folder: string): string {
  if (isTaskName(name)) return name;
  throw new BrigError(`${JSON.stringify(folder)} has a task named ${JSON.stringify(name)}: ${nameRule}`, {
    code: "usage.invalid",
    hint: "the run was not written by brig",
  });
}
