import type { TaskTree } from "../files/task-tree.js";
import type { TaskNotes } from "../notes/task-notes.js";
import type { Variables } from "../values/variables.js";

/** Shared by all parts of the reader. */
export interface HarborReading {
  tree: TaskTree;
  notes: TaskNotes;
  variables: Variables;
  /** Before schema 1.4, an environment had limits of its own where the file gave none. */
  hasOlderDefaults: boolean;
}

export const TASK_FILE = "task.toml";
