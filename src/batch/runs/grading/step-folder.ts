import { join } from "node:path";
import type { Task, TaskStep } from "../../tasks/task.js";

/** Folder of a step. If there are several, each has its own below that of the attempt. */
export function stepFolder(folder: string, { task, step }: { task: Task; step: TaskStep }): string {
  return task.steps.length === 1 ? folder : join(folder, "steps", String(task.steps.indexOf(step) + 1));
}
