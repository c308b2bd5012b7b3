import { BrigError } from "../../../errors.js";
import { isTaskName, nameRule } from "../../tasks/values/task-name.js";
import { type BatchFile, settingDifferences, taskDifferences } from "../batch/batch-settings.js";
import { changesText } from "../batch/changes-text.js";
import { refuseEqualFolders } from "../batch/equal-folders.js";

export interface NamedBatch {
  folder: string;
  batch: BatchFile;
}

/**
 * The tasks of all runs. The number of attempts may differ, and so may which tasks there are. Error: `usage.invalid`
 * if anything else does that decides what attempts give.
 */
export function tasksTogether(runs: readonly [NamedBatch, ...NamedBatch[]]): BatchFile["tasks"] {
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
