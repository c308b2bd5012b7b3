import type { AttemptResult } from "../../runs/results/attempt-result.js";

interface WorkerAttempt {
  run: string;
  task: string;
  attempt: number;
}

/** Ending of an attempt for this worker. */
export type AttemptEnding =
  | { kind: "finished"; status: AttemptResult["status"]; reward: number | null }
  /** Another worker had put its result into the store before. */
  | { kind: "known" }
  | { kind: "cancelled" }
  /** The attempt waits in the queue again, since this worker is stopping. */
  | { kind: "returned" }
  /** Another worker has taken it over, because this one had not been heard of for too long. */
  | { kind: "taken-over" }
  | { kind: "fault"; message: string; hint: string | null };

export type WorkerEvent =
  | { kind: "started"; worker: string; slots: number }
  | ({ kind: "attempt-started" } & WorkerAttempt)
  | ({ kind: "attempt-ended"; ending: AttemptEnding } & WorkerAttempt)
  | { kind: "draining"; running: number }
  | { kind: "ended"; attempts: number };
