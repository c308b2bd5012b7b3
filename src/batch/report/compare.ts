import { type SettingDifference, settingDifferences, taskDifferences } from "../runs/batch/batch-settings.js";
import type { Run } from "../runs/batch/run-store.js";
import { type Change, compareTasks, type TaskComparison } from "./compare-tasks.js";
import { type Estimate, mcnemar, meanDifference } from "./statistics.js";

export interface RunComparison {
  /** Differences of settings. Includes tasks that only one of the runs has, and those that have changed. */
  settings: SettingDifference[];
  /** Number of tasks by kind of change, including tasks that do not have a score in both runs. */
  counts: Record<Change, number>;
  /** Difference of the mean rewards over the tasks with a score in both; null if there are none. */
  difference: Estimate | null;
  /** Probability that chance alone splits the flipped tasks as unevenly: McNemar's exact test. */
  chance: number;
  tasks: TaskComparison[];
}

export function compareRuns(before: Run, after: Run): RunComparison {
  const tasks = compareTasks(before.outcomes, after.outcomes);
  const counts = { lost: 0, gained: 0, worse: 0, better: 0, same: 0, incomparable: 0 };
  for (const { change } of tasks) counts[change]++;
  return {
    settings: [
      ...settingDifferences(before.batch.settings, after.batch.settings),
      ...taskDifferences(before.batch.tasks, after.batch.tasks),
    ],
    counts,
    difference: meanDifference(tasks.flatMap(({ difference }) => (difference === null ? [] : [difference]))),
    chance: mcnemar(counts),
    tasks,
  };
}
