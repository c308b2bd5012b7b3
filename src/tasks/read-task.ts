import type { TaskFault } from "./notes/task-notes.js";
import type { Task } from "./task.js";
import type { Variables } from "./values/variables.js";

/** What every reader takes. */
export interface ReadOptions {
  /** The variables of this machine that tasks may ask for with `${NAME}`. Whatever is here, a task can read. */
  variables: Variables;
  signal?: AbortSignal | undefined;
}

/** What a reader gives for one task. */
export type ReadTask = { kind: "task"; task: Task } | ({ kind: "faulty" } & UnusableTask);

/** A task with faults. */
export interface UnusableTask {
  /** As far as that could be read. */
  name?: string | undefined;
  faults: readonly TaskFault[];
}
