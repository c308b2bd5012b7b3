import type { Config } from "../../agent/index.js";
import type { AttemptAgent, BatchSettings, RunImages, Task, TasksPlace } from "../../batch/index.js";
import type { CliContext } from "../../command/index.js";
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
