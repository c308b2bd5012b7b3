import { isBrigError } from "../../../errors.js";
import { taskFindings } from "../../tasks/lint/task-findings.js";
import { faultsError, faultText } from "../../tasks/notes/fault-text.js";
import { type FoundTasks, type ReadTasksOptions, readAll, sameNames } from "../../tasks/read-tasks.js";
import type { Task } from "../../tasks/task.js";
import { refuseUnsupported } from "../attempt/unsupported.js";
import { isChosen, selectTasks, type TaskSelection } from "./select-tasks.js";

export interface ReadSelectedOptions extends ReadTasksOptions {
  selection: TaskSelection;
  /** Leaves out what cannot be used, instead of refusing all. Default: false. */
  skipsUnusable?: boolean | undefined;
}

export interface SelectedTasks extends Pick<FoundTasks, "tasks" | "origins" | "warnings"> {
  /** Why tasks were left out that were chosen, one sentence each, with the task. */
  skipped: string[];
}

/**
 * Reads the tasks at these paths that are chosen by name; what is wrong with the others is of no matter. Errors: `task.invalid`,
 * `usage.invalid`.
 */
export async function readSelected(
  paths: readonly string[],
  { selection, skipsUnusable = false, ...options }: ReadSelectedOptions,
): Promise<SelectedTasks> {
  const { tasks, unusable, faults, origins, warnings } = await readAll(paths, options);
  const faulty = unusable.filter(({ name }) => isChosen(name, selection)).flatMap((one) => one.faults);
  if (faults.length > 0 || (!skipsUnusable && faulty.length > 0)) throw faultsError([...faults, ...faulty]);
  const { usable, reasons } = skipsUnusable
    ? await partition(tasks.filter(({ name }) => isChosen(name, selection)))
    : { usable: tasks, reasons: [] };
  const known = [...tasks, ...unusable].flatMap(({ name }) => name ?? []);
  const selected = selectTasks(usable, selection, known);
  const twice = sameNames(selected);
  if (twice.length > 0) throw faultsError(twice);
  return { tasks: selected, origins, warnings, skipped: [...faulty.map(faultText), ...reasons] };
}

async function partition(tasks: readonly Task[]): Promise<{ usable: Task[]; reasons: string[] }> {
  const usable: Task[] = [];
  const reasons: string[] = [];
  for (const task of tasks) {
    const reason = await whyUnusable(task);
    if (reason === null) usable.push(task);
    else reasons.push(reason);
  }
  return { usable, reasons };
}

/** Reason for which an attempt at a readable task would be refused; null for none. */
async function whyUnusable(task: Task): Promise<string | null> {
  try {
    refuseUnsupported(task);
  } catch (error) {
    if (isBrigError(error, "usage.invalid")) return error.message;
    throw error;
  }
  const [finding] = await taskFindings(task);
  return finding === undefined ? null : `${task.source}/${finding.file}: ${finding.message}`;
}
