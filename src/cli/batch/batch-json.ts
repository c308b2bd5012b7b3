import type { BatchEvent, Summary } from "../../batch/index.js";

/** The event as `--json` prints it; null for the end of the run, which `endAsJson` prints with the summary. */
export function eventAsJson(event: BatchEvent): object | null {
  switch (event.kind) {
    case "started": {
      const { folder, tasks, attempts, finished, concurrency } = event;
      return { type: "batch.started", folder, tasks, attempts, finished, concurrency };
    }
    case "attempt-started":
      return { type: "attempt.started", task: event.task, attempt: event.attempt, try: event.try };
    case "attempt-stage": {
      const { task, attempt, stage, grading } = event;
      return { type: "attempt.stage", task, attempt, stage, ...(grading !== undefined && { grading }) };
    }
    case "attempt-retried": {
      const { task, attempt, failure } = event;
      return { type: "attempt.retried", task, attempt, try: event.try, failure };
    }
    case "attempt-ended":
      return { type: "attempt.ended", result: event.result };
    case "waiting":
      return { type: "batch.waiting", reason: event.reason };
    case "draining":
      return { type: "batch.draining", reason: event.reason, running: event.running };
    case "stopping":
      return { type: "batch.stopping", running: event.running };
    case "ended":
      return null;
    default:
      return event satisfies never;
  }
}

export function endAsJson(event: BatchEvent & { kind: "ended" }, summary: Summary): object {
  return { type: "batch.ended", stop: event.stop, summary };
}
