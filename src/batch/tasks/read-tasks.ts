import { resolve } from "node:path";
import { type FoundTask, findTasks } from "./find-tasks.js";
import { faultsError, shown } from "./notes/fault-text.js";
import { type TaskFault, TaskNotes } from "./notes/task-notes.js";
import type { ReadOptions, ReadTask, UnusableTask } from "./read-task.js";
import type { Task } from "./task.js";

export interface ReadTasksOptions extends ReadOptions {
  /** Relative paths begin here. */
  cwd: string;
}

/**
 * Reads all tasks at these paths: directories of tasks, at most three levels above them, or files. Error:
 * `task.invalid`, which names every fault of every task.
 */
export async function readTasks(paths: readonly string[], options: ReadTasksOptions): Promise<Task[]> {
  return (await readLocatedTasks(paths, options)).tasks;
}

/** The same, with the directory or the file that each task was read from, by its name. */
export async function readLocatedTasks(
  paths: readonly string[],
  options: ReadTasksOptions,
): Promise<Pick<ExaminedTasks, "tasks" | "origins">> {
  const { tasks, faults, origins } = await examineTasks(paths, options);
  if (faults.length > 0) throw faultsError(faults);
  return { tasks, origins };
}

interface ExaminedTasks extends Pick<FoundTasks, "tasks" | "origins" | "warnings"> {
  /** Faults of the paths, and of all tasks. */
  faults: TaskFault[];
}

/** The same, with the faults beside the tasks that can be used. */
export async function examineTasks(
  paths: readonly string[],
  options: ReadTasksOptions,
): Promise<ExaminedTasks> {
  const { tasks, unusable, faults, origins, warnings } = await readAll(paths, options);
  const all = [...faults, ...unusable.flatMap((task) => task.faults), ...sameNames(tasks)];
  return { tasks, faults: all, origins, warnings };
}

export interface FoundTasks {
  tasks: Task[];
  unusable: UnusableTask[];
  /** Faults of the paths. */
  faults: TaskFault[];
  /** Absolute paths by the names of tasks. */
  origins: ReadonlyMap<string, string>;
  /** Warnings about the paths, one sentence each. */
  warnings: string[];
}

/** Reads all that is at these paths, for somebody who then chooses among it. Names may be there twice. */
export async function readAll(
  paths: readonly string[],
  { cwd, ...options }: ReadTasksOptions,
): Promise<FoundTasks> {
  const { found, faults, warnings } = locate(paths.map((path) => resolve(cwd, path)));
  const read: ReadTask[] = [];
  const origins = new Map<string, string>();
  for (const { path, read: reader } of found) {
    options.signal?.throwIfAborted();
    const there = await reader(path, options);
    for (const one of there) if (one.kind === "task") origins.set(one.task.name, path);
    read.push(...there);
  }
  const tasks = read.flatMap((one) => (one.kind === "task" ? [one.task] : []));
  const unusable = read.flatMap((one) => (one.kind === "faulty" && one.faults.length > 0 ? [one] : []));
  return { tasks, unusable, faults, origins, warnings };
}

/** Finds each task once, also if the paths overlap. */
function locate(paths: readonly string[]): { found: FoundTask[]; faults: TaskFault[]; warnings: string[] } {
  const faults: TaskFault[] = [];
  const warnings: string[] = [];
  const found = new Map<string, FoundTask>();
  for (const path of new Set(paths)) {
    const notes = new TaskNotes(path);
    for (const task of findTasks(path, notes)) found.set(task.path, task);
    faults.push(...notes.faults);
    warnings.push(...notes.warnings);
  }
  return { found: [...found.values()], faults, warnings };
}

/** Results lie in folders by the task's name, in which a slash is written as two underscores. */
export function sameNames(tasks: readonly Task[]): TaskFault[] {
  const byFolder = new Map<string, Task>();
  const faults: TaskFault[] = [];
  for (const task of tasks) {
    const folder = task.name.replaceAll("/", "__");
    const other = byFolder.get(folder);
    if (other === undefined) byFolder.set(folder, task);
    else {
      const notes = new TaskNotes(task.source);
      notes.refuse(`has the name ${shown(task.name)}, which ${shown(other.source)} has too`, {
        hint: "rename one of the tasks, or run them in batches of their own",
      });
      faults.push(...notes.faults);
    }
  }
  return faults;
}
