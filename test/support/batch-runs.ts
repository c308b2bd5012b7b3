import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { BatchEvent } from "../../src/batch/runs/batch/batch-events.js";
import { retryPolicy } from "../../src/batch/runs/batch/batch-settings.js";
import type { BatchOptions } from "../../src/batch/runs/batch/run-batch.js";
import { playedRunner, playedSettings, playedTasks } from "./played-attempts.js";

export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "brig-test-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
}

/** A run of three tasks without waits, and the events that it reports. */
export function batchOptions(
  folder: string,
  given: Partial<BatchOptions> = {},
): BatchOptions & { events: BatchEvent[] } {
  const events: BatchEvent[] = [];
  return {
    folder,
    tasks: playedTasks(3),
    settings: playedSettings,
    runner: playedRunner(),
    concurrency: 2,
    retries: retryPolicy(),
    limits: {},
    failsFast: false,
    resume: { allowsChanges: false, retriesInfrastructure: false, scoresUnscored: false },
    retryWaitMs: () => 0,
    now: () => new Date("2026-11-23T08:00:00Z"),
    onEvent: (event) => events.push(event),
    drain: new AbortController().signal,
    signal: new AbortController().signal,
    ...given,
    events,
  };
}
