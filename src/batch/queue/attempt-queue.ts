import { Job, Queue } from "bullmq";
import type { Redis } from "ioredis";
import { parseJson } from "../../lib/json/parse-json.js";
import {
  type AttemptJob,
  attemptJobSchema,
  jobIdOf,
  type RunRecord,
  runRecordSchema,
  type WorkerRecord,
  workerRecordSchema,
} from "./records.js";

export const QUEUE_NAME = "attempts";
export const QUEUE_PREFIX = "brig";

/** Records that nobody has asked for in this time expire. */
const KEPT_SEC = 7 * 24 * 3600;
/** A worker that has said nothing for so long counts as gone. */
const WORKER_RECORD_SEC = 20;
const ALL = "all";

const keys = {
  workers: `${QUEUE_PREFIX}:workers`,
  worker: (id: string) => `${QUEUE_PREFIX}:worker:${id}`,
  runs: `${QUEUE_PREFIX}:runs`,
  run: (run: string) => `${QUEUE_PREFIX}:run:${run}`,
  counts: (run: string) => `${QUEUE_PREFIX}:run:${run}:counts`,
  cancelled: (run: string) => `${QUEUE_PREFIX}:run:${run}:cancelled`,
};

/** Number of a run's attempts that have come back to its submitter. */
export interface RunCounts {
  done: number;
  /** Number of these attempts that the infrastructure ended. */
  failed: number;
}

/** The queue, and what submitters and workers say beside it. Everything in it expires. */
export class AttemptQueue implements AsyncDisposable {
  readonly #redis: Redis;
  readonly jobs: Queue<AttemptJob>;

  constructor(redis: Redis) {
    this.#redis = redis;
    this.jobs = new Queue(QUEUE_NAME, {
      connection: redis,
      prefix: QUEUE_PREFIX,
      defaultJobOptions: { removeOnComplete: { age: KEPT_SEC }, removeOnFail: { age: KEPT_SEC } },
    });
    // The connection reports its own trouble.
    this.jobs.on("error", () => undefined);
  }

  /** Adds an attempt that is not there yet, in whatever state. */
  async add(job: AttemptJob): Promise<void> {
    await this.jobs.add("attempt", attemptJobSchema.parse(job), { jobId: jobIdOf(job) });
  }

  async find(jobId: string): Promise<Job<AttemptJob> | null> {
    return (await Job.fromId<AttemptJob>(this.jobs, jobId)) ?? null;
  }

  /** Whether it is removed: one that a worker has taken is not. */
  async remove(jobId: string): Promise<boolean> {
    return await this.jobs.remove(jobId).then(
      (removed) => removed === 1,
      () => false,
    );
  }

  /** Tells workers to end an attempt, or all of a run. */
  async cancel(run: string, jobId = ALL): Promise<void> {
    await this.#redis.multi().sadd(keys.cancelled(run), jobId).expire(keys.cancelled(run), KEPT_SEC).exec();
  }

  async isRunCancelled(run: string): Promise<boolean> {
    return (await this.#redis.sismember(keys.cancelled(run), ALL)) === 1;
  }

  /** Takes back that a run was cancelled, because the same command was given again. */
  async allowRun(run: string): Promise<void> {
    await this.#redis.del(keys.cancelled(run));
  }

  /** Returns those of the jobs that are to end. */
  async cancelledAmong(jobs: readonly { run: string; jobId: string }[]): Promise<string[]> {
    if (jobs.length === 0) return [];
    const pipeline = this.#redis.pipeline();
    for (const { run, jobId } of jobs) {
      pipeline.sismember(keys.cancelled(run), ALL);
      pipeline.sismember(keys.cancelled(run), jobId);
    }
    const answers = (await pipeline.exec()) ?? [];
    return jobs.flatMap(({ jobId }, index) =>
      [answers[2 * index], answers[2 * index + 1]].some((answer) => answer?.[1] === 1) ? [jobId] : [],
    );
  }

  async sayWorker(id: string, record: WorkerRecord): Promise<void> {
    await this.#redis
      .multi()
      .sadd(keys.workers, id)
      .set(keys.worker(id), JSON.stringify(record), "EX", WORKER_RECORD_SEC)
      .exec();
  }

  async forgetWorker(id: string): Promise<void> {
    await this.#redis.multi().srem(keys.workers, id).del(keys.worker(id)).exec();
  }

  /** Workers that have reported lately, by id. */
  async workers(): Promise<Map<string, WorkerRecord>> {
    const ids = await this.#redis.smembers(keys.workers);
    const found = new Map<string, WorkerRecord>();
    for (const id of ids) {
      const text = await this.#redis.get(keys.worker(id));
      const record = text === null ? null : workerRecordSchema.safeParse(parseJson(text)).data;
      if (record) found.set(id, record);
      else await this.#redis.srem(keys.workers, id);
    }
    return found;
  }

  async sayRun(record: RunRecord): Promise<void> {
    const { run } = record;
    await this.#redis
      .multi()
      .sadd(keys.runs, run)
      .set(keys.run(run), JSON.stringify(record), "EX", KEPT_SEC)
      .expire(keys.counts(run), KEPT_SEC)
      .exec();
  }

  async count(run: string, result: { isFailed: boolean }): Promise<void> {
    const pipeline = this.#redis.multi().hincrby(keys.counts(run), "done", 1);
    if (result.isFailed) pipeline.hincrby(keys.counts(run), "failed", 1);
    await pipeline.expire(keys.counts(run), KEPT_SEC).exec();
  }

  /** The runs of the last days, with what has come back to them. */
  async runs(): Promise<(RunRecord & RunCounts)[]> {
    const found: (RunRecord & RunCounts)[] = [];
    for (const run of await this.#redis.smembers(keys.runs)) {
      const text = await this.#redis.get(keys.run(run));
      const record = text === null ? null : runRecordSchema.safeParse(parseJson(text)).data;
      if (!record) await this.#redis.srem(keys.runs, run);
      else {
        const { done = 0, failed = 0 } = await this.#redis.hgetall(keys.counts(run));
        found.push({ ...record, done: Number(done), failed: Number(failed) });
      }
    }
    return found.toSorted((one, other) => (one.startedAt < other.startedAt ? -1 : 1));
  }

  /** Whether a worker holds this job; if none does though it is active, that worker is lost. */
  async isHeld(jobId: string): Promise<boolean> {
    return (await this.#redis.exists(`${QUEUE_PREFIX}:${QUEUE_NAME}:${jobId}:lock`)) === 1;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.jobs.close().catch(() => undefined);
  }
}
