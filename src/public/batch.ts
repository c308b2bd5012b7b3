// brigbox/batch: an agent on many tasks, as `brig batch` runs it.
export type {
  AttemptFailure,
  AttemptLimits,
  AttemptOutcome,
  AttemptResult,
  BatchAgent,
  BatchEvent,
  BatchListener,
  BatchStop,
  CostOf,
  RunBatchOptions,
  RunBatchResult,
  RunLimits,
  Summary,
  TaskSelection,
} from "../batch/index.js";
export { runBatch } from "../batch/index.js";
