import { BrigError } from "../../../errors.js";
import type { AttemptQueue } from "../attempt-queue.js";
import { runOfJob } from "../records.js";
import { readQueueStatus } from "./queue-status.js";

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
  await queue.cancelRun(run);
  let removed = 0;
  for (const jobId of await queue.jobs.getRanges(["wait", "prioritized", "delayed"]))
    if (runOfJob(jobId) === run && (await queue.remove(jobId))) removed++;
  return { removed, running: known.running };
}
