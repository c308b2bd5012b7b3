import { BrigError } from "../../errors.js";
import type { AttemptQueue, RunCounts } from "./attempt-queue.js";
import { attemptJobSchema, type RunRecord, runOfJob, type WorkerRecord } from "./records.js";

interface RunningAttempt {
  run: string;
  task: string;
  attempt: number;
  /** The id of its worker; null if it is not known. */
  worker: string | null;
  startedAt: string | null;
  /** No worker holds it any more: another one will take it over. */
  isStalled: boolean;
}

export interface QueueStatus {
  waiting: number;
  running: RunningAttempt[];
  stalled: number;
  workers: (Omit<WorkerRecord, "name"> & { id: string; host: string; running: number })[];
  runs: (RunRecord & RunCounts & RunInQueue)[];
}

interface RunInQueue {
  waiting: number;
  running: number;
  /** Attempts that have ended and that the submitter has not taken yet. */
  ended: number;
}

export async function readQueueStatus(queue: AttemptQueue): Promise<QueueStatus> {
  const [waiting, ended, running] = await Promise.all([
    queue.jobs.getRanges(["wait", "prioritized", "delayed"]),
    queue.jobs.getRanges(["completed", "failed"]),
    runningAttempts(queue),
  ]);
  const [waitingByRun, endedByRun] = [countsByRun(waiting), countsByRun(ended)];
  const workers = [...(await queue.workers())].map(([id, { name: host, ...record }]) => ({
    id,
    host,
    ...record,
    running: running.filter(({ worker }) => worker === id).length,
  }));
  const runs = (await queue.runs()).map((record) => ({
    ...record,
    waiting: waitingByRun.get(record.run) ?? 0,
    running: running.filter(({ run }) => run === record.run).length,
    ended: endedByRun.get(record.run) ?? 0,
  }));
  const stalled = running.filter(({ isStalled }) => isStalled).length;
  return { waiting: waiting.length, running, stalled, workers, runs };
}

async function runningAttempts(queue: AttemptQueue): Promise<RunningAttempt[]> {
  const found: RunningAttempt[] = [];
  for (const jobId of await queue.jobs.getRanges(["active"])) {
    const job = await queue.find(jobId);
    const parsed = attemptJobSchema.safeParse(job?.data);
    // Such a job has ended meanwhile, or is not brig's.
    if (job === null || !parsed.success || job.finishedOn !== undefined) continue;
    const { run, task, attempt } = parsed.data;
    found.push({
      run,
      task,
      attempt,
      worker: job.processedBy ?? null,
      startedAt: job.processedOn === undefined ? null : new Date(job.processedOn).toISOString(),
      isStalled: !(await queue.isHeld(jobId)),
    });
  }
  return found;
}

function countsByRun(jobIds: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const jobId of jobIds) counts.set(runOfJob(jobId), (counts.get(runOfJob(jobId)) ?? 0) + 1);
  return counts;
}

/**
 * Takes the attempts of a run that wait out of the queue, and tells workers to end those that run. Error: `usage.invalid` for
 * a run that the queue does not know.
 */
export async function cancelRun(
  queue: AttemptQueue,
  run: string,
): Promise<{ removed: number; running: number }> {
  const { runs } = await readQueueStatus(queue);
  const known = runs.find((one) => one.run === run);
  if (known === undefined)
    throw new BrigError(`the queue has no run ${JSON.stringify(run)}`, {
      code: "usage.invalid",
      hint: "brig queue status lists the runs",
    });
  await queue.cancel(run);
  let removed = 0;
  for (const jobId of await queue.jobs.getRanges(["wait", "prioritized", "delayed"]))
    if (runOfJob(jobId) === run && (await queue.remove(jobId))) removed++;
  return { removed, running: known.running };
}
