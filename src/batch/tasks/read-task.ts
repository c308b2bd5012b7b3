import type { TaskFault } from "./notes.js";
import type { Task } from "./task.js";
import type { Variables } from "./values.js";

/** Options of every reader. */
export interface ReadOptions {
  /** The variables of this machine that tasks may ask for with `${NAME}`. Whatever is here, a task can read. */
  variables: Variables;
  signal?: AbortSignal | undefined;
}

/** A reader's result for one task. */
export type ReadTask = { kind: "task"; task: Task } | ({ kind: "faulty" } & UnusableTask);

/** A task with faults. */
export interface UnusableTask {
  /** Undefined if the name could not be read. */
  name?: string | undefined;
  faults: readonly TaskFault[];
}
