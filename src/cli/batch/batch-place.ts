import type { TasksPlace } from "../../batch/run-tasks.js";
import type { Config } from "../../config/config-schema.js";
import type { AttemptAgent } from "../../runs/agents/attempt-agent.js";
import type { BatchSettings } from "../../runs/batch/batch-settings.js";
import type { RunImages } from "../../runs/images/open-task-images.js";
import type { Task } from "../../tasks/task.js";
import type { CliContext } from "../context.js";
import type { BatchFlags } from "./batch-flags.js";

/** The place where the attempts of a batch run: this machine, or the workers of a queue. */
export interface BatchPlace extends AsyncDisposable {
  attempts: TasksPlace;
  /** How many attempts the place has at a time. Undefined means one for each processor. */
  concurrency: number | undefined;
  /** The images of this machine's engine; null if nothing runs on this machine. */
  images: RunImages | null;
}

export interface OpenPlaceOptions {
  flags: BatchFlags;
  context: CliContext;
  config: Config;
  tasks: readonly Task[];
  /** The directory or the file that each task was read from, by its name. */
  origins: ReadonlyMap<string, string>;
  settings: BatchSettings;
  agent: AttemptAgent;
  folder: string;
  /** Aborting it starts no more attempts. */
  drain: AbortSignal;
}
