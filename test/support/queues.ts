import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { AttemptQueue } from "../../src/batch/queue/attempt-queue.js";
import type { RunSpec } from "../../src/batch/queue/records.js";
import { connectRedis, disconnectRedis, readRedisAddress } from "../../src/batch/queue/redis.js";
import { type ObjectStore, openStore } from "../../src/batch/queue/store.js";
import { PendingJobs } from "../../src/batch/queue/submit/pending-jobs.js";
import { QueueRunner } from "../../src/batch/queue/submit/queue-runner.js";
import { TaskPackages } from "../../src/batch/queue/submit/task-packages.js";
import { runWorker, type WorkerEvent } from "../../src/batch/queue/worker/run-worker.js";
import {
  type AttemptRunner,
  type BatchOptions,
  type BatchOutcome,
  runAttempts,
} from "../../src/batch/runs/batch/run-batch.js";
import { readAll } from "../../src/batch/tasks/read-tasks.js";
import { batchOptions, temporaryFolder } from "./batch-runs.js";
import { playedRunner, playedSettings } from "./played-attempts.js";
import type { RedisServer } from "./redis-server.js";

/** Submitters and workers of one queue, in this process. */
export class TestQueue {
  readonly #server: RedisServer;
  readonly folder: string;

  private constructor(server: RedisServer, folder: string) {
    this.#server = server;
    this.folder = folder;
  }

  /** Submits `count` rows, `task-1` and so on; each asks for the variable `TEST_SECRET`. */
  static async open(server: RedisServer, { count = 3 }: { count?: number } = {}): Promise<TestQueue> {
    const folder = await temporaryFolder();
    await mkdir(join(folder, "tasks/workspace"), { recursive: true });
    await writeFile(join(folder, "tasks/workspace/file"), "content");
    // biome-ignore lint/suspicious/noTemplateCurlyInString: tasks ask for variables like this.
    const row = { prompt: "do it", check: "true", workspace: "workspace", env: { KEY: "${TEST_SECRET}" } };
    const rows = Array.from({ length: count }, () => `${JSON.stringify(row)}\n`);
    await writeFile(join(folder, "tasks/task.jsonl"), rows.join(""));
    return new TestQueue(server, folder);
  }

  async connect(): Promise<{ redis: Awaited<ReturnType<typeof connectRedis>>; queue: AttemptQueue }> {
    const redis = await connectRedis(readRedisAddress(this.#server.urlWithPassword));
    const queue = new AttemptQueue(redis);
    onTestFinished(async () => {
      await queue[Symbol.asyncDispose]();
      await disconnectRedis(redis);
    });
    return { redis, queue };
  }

  async store() {
    return await openStore(join(this.folder, "store"), { cwd: "/", variables: {} });
  }

  /** Runs the batch in `folder/run` on the workers of the queue. */
  async submit(given: Partial<BatchOptions> = {}, ownStore?: ObjectStore): Promise<BatchOutcome> {
    const { redis, queue } = await this.connect();
    const options = { cwd: this.folder, variables: { TEST_SECRET: "the submitter's" } };
    const { tasks, origins } = await readAll(["tasks/task.jsonl"], options);
    const folder = join(this.folder, "run");
    const batch = batchOptions(folder, { tasks, concurrency: 100, ...given });
    const { signal, drain } = batch;
    const store = ownStore ?? (await this.store());
    await using pending = new PendingJobs(redis, queue);
    const packages = new TaskPackages({ tasks, origins, store, folder, signal });
    const spec: RunSpec = {
      schemaVersion: 1,
      settings: playedSettings,
      agent: { flag: "nop", script: null },
    };
    await using runner = new QueueRunner({
      folder,
      host: "here",
      spec,
      queue,
      pending,
      store,
      packages,
      drain,
    });
    return await runAttempts({ ...batch, runner });
  }

  /** Starts a worker. It ends with the test, if not before. */
  async work({ runner = playedRunner(), slots = 1 }: { runner?: AttemptRunner; slots?: number } = {}) {
    const { redis, queue } = await this.connect();
    const store = await this.store();
    const [draining, stopping] = [new AbortController(), new AbortController()];
    const events: WorkerEvent[] = [];
    const ended = runWorker({
      host: "worker",
      slots,
      leaseMs: 2000,
      redis,
      queue,
      store,
      folder: join(this.folder, "work"),
      variables: { TEST_SECRET: "the worker's" },
      openRunner: async () => runner,
      onEvent: (event) => events.push(event),
      drain: draining.signal,
      signal: stopping.signal,
    });
    onTestFinished(async () => {
      stopping.abort();
      await ended;
    });
    return { events, drain: () => draining.abort(), stop: () => stopping.abort(), ended };
  }
}
