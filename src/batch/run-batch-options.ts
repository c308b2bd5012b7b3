import type { ModelClient } from "../agent/index.js";
import type { Summary } from "./report/summary.js";
import type { CostOf } from "./runs/agents/model-agent.js";
import type { AttemptLimits } from "./runs/attempt/attempt.js";
import type { RunLimits } from "./runs/batch/attempt-schedule.js";
import type { BatchListener, BatchStop } from "./runs/batch/batch-events.js";
import type { TaskSelection } from "./runs/batch/select-tasks.js";
import type { AttemptOutcome } from "./runs/results/attempt-outcome.js";
import type { AttemptFailure } from "./runs/results/attempt-result.js";

/** The agent that works on the tasks of a batch. */
export type BatchAgent =
  /** The task's own solution, or nothing at all. */
  | { kind: "oracle" | "nop" }
  /** A command of the container's shell; `BRIG_INSTRUCTION_FILE` names the file with the instruction. */
  | { kind: "command"; command: string }
  /** Brig's own loop. */
  | {
      kind: "model";
      /** The name of the model in the results. */
      model: string;
      /** A new client for each attempt, such as one of `createModelClient`. */
      open: (threadId: string) => Promise<ModelClient>;
      /** Other options that influence the model; a run with other options is another run. */
      options?: Readonly<Record<string, string | number | boolean | null>> | undefined;
      /** Default: the cost is unknown. */
      costOf?: CostOf | undefined;
    };

/** The options of `runBatch`. */
export interface RunBatchOptions {
  /** Directories of tasks, directories of such directories, or files with a task in each row. */
  paths: readonly string[];
  agent: BatchAgent;
  /** The folder of the run, made if it is missing. A run of the same settings that it contains goes on. */
  folder: string;
  /** Selects the tasks to run. Default: all. */
  select?: TaskSelection | undefined;
  /** Leave out tasks that cannot be used, instead of running none. Default false. */
  skipsUnusable?: boolean | undefined;
  /** Attempts at each task. Default 1. */
  attempts?: number | undefined;
  /** Most attempts that run at once; fewer while the machine has no room. Default: one for each processor. */
  concurrency?: number | undefined;
  /** Limits of each attempt. Default: what its task says. */
  limits?: AttemptLimits | undefined;
  /** Limits of the whole run: when one is reached, no more attempts start. Default: none. */
  runLimits?: RunLimits | undefined;
  /** Further tries after failures of the infrastructure, by class. Default: 2, and 1 for `image-failed`. */
  retries?: Readonly<Partial<Record<Exclude<AttemptFailure["class"], "ungradable">, number>>> | undefined;
  /** Start no more attempts after the first that does not pass. Default false. */
  failsFast?: boolean | undefined;
  /** Start the attempts in an order that this number decides. Default: the first at each task, then the second. */
  shuffleSeed?: number | undefined;
  /** Pull nothing; fail before anything runs if an image is missing. Default false. */
  isOffline?: boolean | undefined;
  /** Other names for images, by the names that tasks and Dockerfiles use. Default: none. */
  imageAliases?: Readonly<Record<string, string>> | undefined;
  /** OCI runtime, for example "runsc". Default: the engine's own. */
  runtime?: string | undefined;
  /** Set aside what other tasks or settings have given, and run it anew. Default false. */
  allowsChanges?: boolean | undefined;
  /** Run attempts again that the infrastructure has ended for good. Default false. */
  retriesInfrastructure?: boolean | undefined;
  /** Grade attempts again whose agent was done but that have no score. Default false. */
  scoresUnscored?: boolean | undefined;
  /** Called with everything that happens, in order. It must not throw. */
  onEvent?: BatchListener | undefined;
  /** Called with what is doubtful about a task; `task` is empty for what concerns none that runs. */
  onWarning?: ((warning: { task: string; message: string }) => void) | undefined;
  /** Aborting it starts no more attempts, and lets those that run end. */
  drain?: AbortSignal | undefined;
  /** Aborting it cancels the attempts that run. The folder can go on later. */
  signal?: AbortSignal | undefined;
}

/** Result of a batch. The rest is in the folder. */
export interface RunBatchResult {
  folder: string;
  summary: Summary;
  /** Outcome of each attempt that has ended, including those of earlier runs in the folder. */
  outcomes: AttemptOutcome[];
  /** Why the run ended early; null if all attempts have ended. */
  stop: BatchStop | null;
}
