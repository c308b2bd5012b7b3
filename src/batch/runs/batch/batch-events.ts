import type { BatchWait } from "../admission/attempt-admission.js";
import type { AttemptStage } from "../attempt/attempt.js";
import type { AttemptFailure, AttemptResult } from "../results/attempt-result.js";
import type { AttemptPlace } from "../results/run-files.js";

/** Why a run started no more attempts before all had ended. */
export type BatchStop =
  /** Ctrl-C, SIGTERM, or the caller's signal. */
  | { kind: "interrupted" }
  /** A limit of the whole run was reached. */
  | { kind: "limit"; limit: "cost" | "tokens" | "time" }
  /** `--fail-fast`, and this attempt failed. */
  | ({ kind: "failed" } & AttemptPlace);

/** An event of a run. The order is `started`, then the events of the attempts, then `ended`. */
export type BatchEvent =
  | {
      kind: "started";
      folder: string;
      tasks: number;
      attempts: number;
      /** Attempts that an earlier run of the same command has already ended. */
      finished: number;
      concurrency: number;
    }
  | ({ kind: "attempt-started"; try: number } & AttemptPlace)
  | ({
      kind: "attempt-stage";
      stage: AttemptStage;
      /** The grading that is under way, in the stage `confirm`. */
      grading?: { number: number; atMost: number } | undefined;
    } & AttemptPlace)
  /** The infrastructure ended a try, and there will be another one. */
  | ({ kind: "attempt-retried"; try: number; failure: AttemptFailure } & AttemptPlace)
  | { kind: "attempt-ended"; result: AttemptResult }
  /** Nothing starts until there is room, or the engine or the model's endpoint works again. Null: attempts start again. */
  | { kind: "waiting"; reason: BatchWait | null }
  /** No more attempts start; those that run go on to their end. */
  | { kind: "draining"; reason: BatchStop; running: number }
  /** The run stops, and the attempts that are running are being cancelled. */
  | { kind: "stopping"; running: number }
  | { kind: "ended"; stop: BatchStop | null };

/** Takes what happens in a run. */
export type BatchListener = (event: BatchEvent) => void;
