import { readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { resolve } from "node:path";
import type { RunSpec } from "../../batch/index.js";
import { PendingJobs, QueueRunner, TaskPackages } from "../../batch/index.js";
import { say } from "../../command/index.js";
import type { BatchPlace, OpenPlaceOptions } from "../batch/batch-place.js";
import { openQueue, openResults } from "./open-queue.js";

/** How many attempts are in the queue at a time: enough for many workers, and few enough to look at. */
const IN_QUEUE = 256;

/** The workers of a queue. Errors: `usage.invalid`, `queue.unreachable`, `store.failed`. */
export async function openQueuePlace(options: OpenPlaceOptions): Promise<BatchPlace> {
  const { flags, context, tasks, origins, settings, folder, drain } = options;
  const { signal } = context;
  const store = await openResults(flags, context);
  const agent = await agentOf(flags.agent, context.cwd);
  const opened = await openQueue(flags, context);
  const { queue, redis } = opened;
  if ((await queue.workers()).size === 0)
    await say(context.stderr, "brig: the queue has no workers yet; start them with: brig worker --queue …\n");
  const pending = new PendingJobs(redis, queue);
  const packages = new TaskPackages({ tasks, origins, store, folder, signal });
  const spec: RunSpec = { schemaVersion: 1, settings, agent };
  const runner = new QueueRunner({ folder, host: hostname(), spec, queue, pending, store, packages, drain });
  return {
    attempts: { kind: "elsewhere", runner },
    concurrency: flags.concurrency ?? IN_QUEUE,
    images: null,
    [Symbol.asyncDispose]: async () => {
      await runner[Symbol.asyncDispose]();
      await pending[Symbol.asyncDispose]();
      await opened[Symbol.asyncDispose]();
    },
  };
}

/** A script travels as its text, since workers do not have its file. */
async function agentOf(flag: string, cwd: string): Promise<RunSpec["agent"]> {
  const [, file] = /^scripted:(.+)$/s.exec(flag) ?? [];
  if (file === undefined) return { flag, script: null };
  return { flag: "scripted", script: await readFile(resolve(cwd, file), "utf8") };
}
