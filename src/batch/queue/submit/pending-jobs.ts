import { QueueEvents } from "bullmq";
import type { Redis } from "ioredis";
import { pause } from "../../../lib/time/pause.js";
import type { AttemptStage } from "../../runs/attempt/attempt.js";
import { type AttemptQueue, QUEUE_NAME, QUEUE_PREFIX } from "../attempt-queue.js";
import { type JobOutcome, jobOutcomeSchema, jobProgressSchema } from "../records.js";

/** Events can be lost, as when Redis was restarted. */
const LOOK_AGAIN_MS = 3000;
const LOOKS_AT_ONCE = 32;
const CLOSE_MS = 1000;

/** End of a job. "lost": several workers in turn have gone away while they ran it. "missing": Redis does not have it. */
export type JobEnd = JobOutcome | { kind: "lost"; reason: string } | { kind: "missing" };

interface Pending {
  onStage: (stage: AttemptStage) => void;
  end: (end: JobEnd) => void;
}

/** Waits for the ends of jobs: told by events, and looked for now and then. */
export class PendingJobs implements AsyncDisposable {
  readonly #queue: AttemptQueue;
  readonly #events: QueueEvents;
  readonly #pending = new Map<string, Pending>();
  readonly #timer: NodeJS.Timeout;
  #isLooking = false;

  constructor(redis: Redis, queue: AttemptQueue) {
    this.#queue = queue;
    this.#events = new QueueEvents(QUEUE_NAME, { connection: redis, prefix: QUEUE_PREFIX });
    this.#events.on("error", () => undefined);
    const look = ({ jobId }: { jobId: string }) => void this.#look(jobId);
    this.#events.on("completed", look).on("failed", look).on("removed", look);
    this.#events.on("progress", ({ jobId, data }) => this.#stage(jobId, data));
    this.#timer = setInterval(() => void this.#lookAtAll(), LOOK_AGAIN_MS);
  }

  /** Resolves when the job has ended, however. */
  async ended(jobId: string, onStage: Pending["onStage"]): Promise<JobEnd> {
    const ended = new Promise<JobEnd>((resolve) => {
      this.#pending.set(jobId, { onStage, end: resolve });
    });
    try {
      await this.#look(jobId);
      return await ended;
    } finally {
      this.#pending.delete(jobId);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    // While Redis is gone, closing waits for it.
    await Promise.race([this.#events.close().catch(() => undefined), pause(CLOSE_MS)]);
  }

  #stage(jobId: string, progress: unknown): void {
    const parsed = jobProgressSchema.safeParse(progress);
    if (parsed.success) this.#pending.get(jobId)?.onStage(parsed.data.stage);
  }

  /** A broken connection is no end: the next look will tell. */
  async #look(jobId: string): Promise<void> {
    if (!this.#pending.has(jobId)) return;
    const end = await this.#endOf(jobId).catch(() => null);
    if (end !== null) this.#pending.get(jobId)?.end(end);
  }

  async #endOf(jobId: string): Promise<JobEnd | null> {
    const job = await this.#queue.find(jobId);
    if (job === null) return { kind: "missing" };
    if (job.finishedOn === undefined) return null;
    if (job.failedReason !== undefined) return { kind: "lost", reason: job.failedReason };
    // A job whose outcome no worker of this version has written is run again.
    return (
      jobOutcomeSchema.safeParse(job.returnvalue).data ?? { kind: "lost", reason: "its end is not readable" }
    );
  }

  async #lookAtAll(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    const jobs = [...this.#pending.keys()];
    for (let from = 0; from < jobs.length; from += LOOKS_AT_ONCE)
      await Promise.all(jobs.slice(from, from + LOOKS_AT_ONCE).map((jobId) => this.#look(jobId)));
    this.#isLooking = false;
  }
}
