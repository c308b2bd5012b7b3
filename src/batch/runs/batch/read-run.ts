import { stat } from "node:fs/promises";
import { join } from "node:path";
import { BrigError } from "../../../errors.js";
import type { AttemptOutcome } from "../results/attempt-outcome.js";
import { runFiles } from "../results/run-files.js";
import type { BatchFile } from "./batch-settings.js";
import { RunStore } from "./run-store.js";

/** The settings of a run, and the outcomes of the attempts that belong to it. */
export interface Run {
  batch: BatchFile;
  outcomes: AttemptOutcome[];
}

/** Reads a run, which another process may still be running. Error: `usage.invalid` for a folder that is none. */
export async function readRun(folder: string): Promise<Run> {
  const batch = await requireRun(folder);
  const { outcomes } = await new RunStore(folder).readOutcomes();
  const names = new Set(batch.tasks.map(({ name }) => name));
  const belongs = ({ task, attempt }: AttemptOutcome) =>
    names.has(task) && attempt <= batch.settings.attempts;
  return { batch, outcomes: [...outcomes.values()].filter(belongs) };
}

/** `batch.json` of a run. Error: `usage.invalid` for a folder without one. */
export async function requireRun(folder: string): Promise<BatchFile> {
  const file = join(folder, runFiles.batch);
  const batch = (await stat(file).catch(() => null)) === null ? null : await new RunStore(folder).readBatch();
  if (batch !== null) return batch;
  throw new BrigError(`${JSON.stringify(folder)} is not the folder of a run: it has no ${runFiles.batch}`, {
    code: "usage.invalid",
    hint: "name the folder that brig batch writes its results to",
  });
}
