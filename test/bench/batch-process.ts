import diagnostics from "node:diagnostics_channel";
import { once } from "node:events";
import type { ClientRequest } from "node:http";
import { type RunBatchOptions, runBatch } from "brigbox/batch";

/** What the parent sends: one batch to run. */
export type BatchOrder = Pick<RunBatchOptions, "paths" | "folder" | "concurrency" | "agent" | "runtime">;

export interface BatchMeasures {
  /** From the start of the first attempt to the end of the last. */
  ms: number;
  scored: number;
  /** The most attempts that ran at once. */
  mostAtOnce: number;
  /** How many times the engine was asked to start a container. */
  containersStarted: number;
  /** The most that was resident of this process at any time. */
  memoryMb: number;
}

const [order] = (await once(process, "message")) as [BatchOrder];
process.send?.(await measure(order));
process.disconnect();

async function measure(options: BatchOrder): Promise<BatchMeasures> {
  let [startedAt, endedAt, running, mostAtOnce, containersStarted] = [0, 0, 0, 0, 0];
  diagnostics.subscribe("http.client.request.start", (message) => {
    const { path } = (message as { request: ClientRequest }).request;
    if (/\/containers\/[^/]+\/start$/.test(path)) containersStarted++;
  });
  const { outcomes } = await runBatch({
    ...options,
    onEvent: ({ kind }) => {
      if (kind === "attempt-started") {
        startedAt ||= performance.now();
        running++;
        mostAtOnce = Math.max(mostAtOnce, running);
      }
      if (kind === "attempt-ended" || kind === "attempt-retried") {
        endedAt = performance.now();
        running--;
      }
    },
  });
  const scored = outcomes.filter(({ status }) => status === "scored").length;
  const memoryMb = process.resourceUsage().maxRSS / 1024;
  return { ms: endedAt - startedAt, scored, mostAtOnce, containersStarted, memoryMb };
}
