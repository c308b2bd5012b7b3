import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { cancelRun, readQueueStatus } from "../../../../src/batch/queue/queue-status.js";
import { storeKeys } from "../../../../src/batch/queue/records.js";
import { connectRedis, readRedisAddress } from "../../../../src/batch/queue/redis.js";
import type { ObjectStore } from "../../../../src/batch/queue/store.js";
import { BrigError } from "../../../../src/errors.js";
import { endlessRunner, infrastructure, playedRunner } from "../../../support/played-attempts.js";
import { TestQueue } from "../../../support/queues.js";
import { hasRedis, PASSWORD, RedisServer, whyNoRedis } from "../../../support/redis-server.js";
import { withReason } from "../../../support/skip-reasons.js";

let server: RedisServer;

beforeAll(async () => {
  if (hasRedis) server = await RedisServer.start();
});

afterAll(() => server?.[Symbol.asyncDispose]());

/** Everything that has ever been written to Redis. */
async function writtenToRedis(): Promise<string> {
  const folder = join(server.dataFolder, "appendonlydir");
  const files = (await readdir(folder)).map((name) => readFile(join(folder, name), "latin1"));
  return (await Promise.all(files)).join("\n");
}

// Without redis-server, which npm test installs if it can, there is nothing to test with.
describe.skipIf(!hasRedis)(withReason("a batch on the workers of a queue", whyNoRedis), () => {
  it("ends with the folders that the workers wrote, and leaves no result in the store", async () => {
    const queue = await TestQueue.open(server);
    const { events } = await queue.work({ slots: 2 });
    const { outcomes, stop } = await queue.submit();
    expect(stop).toBeNull();
    expect(outcomes.map(({ task }) => task).toSorted()).toEqual(["task-1", "task-2", "task-3"]);
    for (const { task } of outcomes) {
      const folder = join(queue.folder, "run/attempts", task, "1");
      expect(await readdir(folder, { recursive: true })).toEqual([
        "agent",
        "result.json",
        "agent/output.txt",
      ]);
    }
    expect(events.filter(({ kind }) => kind === "attempt-ended")).toHaveLength(3);
    const [run = ""] = await readdir(join(queue.folder, "store/runs"));
    expect(await readdir(join(queue.folder, "store/runs", run))).toEqual([expect.stringMatching(/\.json$/)]);
    expect((await readdir(join(queue.folder, "run"))).toSorted()).toEqual([
      "attempts",
      "batch.json",
      "queue.json",
      "results.jsonl",
    ]);
  });

  it("puts nothing outside of the store for a job whose id is a path", async () => {
    const queue = await TestQueue.open(server, { count: 1 });
    const { jobs } = (await queue.connect()).queue;
    const submitted = queue.submit();
    await expect.poll(() => jobs.getWaitingCount()).toBe(1);
    const [job] = await jobs.getWaiting();
    if (job === undefined) throw new TypeError("no job");
    await jobs.add("attempt", job.data, { jobId: "..-../outside" });
    const { events } = await queue.work();
    await submitted;
    await expect.poll(() => events.filter(({ kind }) => kind === "attempt-ended")).toHaveLength(2);
    expect(await readdir(queue.folder)).not.toContain("outside.tar.gz");
  });

  it("gives tasks the variables of the worker, and puts no value of them into Redis or the store", async () => {
    const queue = await TestQueue.open(server, { count: 1 });
    const runner = playedRunner();
    await queue.work({ runner });
    await queue.submit();
    const [order] = runner.orders;
    expect(order?.task.environment.env).toEqual({ KEY: "the worker's" });
    const written = await writtenToRedis();
    expect(written).toContain("task-1");
    for (const secret of ["the submitter's", "the worker's", PASSWORD]) expect(written).not.toContain(secret);
    const stored = (await readdir(join(queue.folder, "store"), { recursive: true })).join("\n");
    expect(stored).toMatch(/packages\/[0-9a-f]{64}\.tar\.gz/);
  });

  it("tries again elsewhere what the infrastructure of a worker ended, and says so in the result", async () => {
    const queue = await TestQueue.open(server, { count: 1 });
    let tries = 0;
    await queue.work({
      runner: playedRunner({ play: () => (++tries === 1 ? infrastructure : { reward: 1 }) }),
    });
    const { outcomes } = await queue.submit();
    expect(outcomes).toMatchObject([
      { status: "scored", reward: 1, tries: [{ failure: { class: "engine-gone" } }] },
    ]);
    const result = await readFile(join(queue.folder, "run/attempts/task-1/1/result.json"), "utf8");
    expect(JSON.parse(result).tries).toHaveLength(1);
  });

  it("takes back what no worker has taken when it is drained, and ends what runs when it is stopped", async () => {
    const queue = await TestQueue.open(server);
    const { events } = await queue.work({ runner: endlessRunner() });
    const [draining, stopping] = [new AbortController(), new AbortController()];
    const submitted = queue.submit({ drain: draining.signal, signal: stopping.signal });
    await expect.poll(() => events.filter(({ kind }) => kind === "attempt-started")).toHaveLength(1);
    const { queue: jobs } = await queue.connect();
    await expect.poll(async () => (await readQueueStatus(jobs)).waiting).toBe(2);
    draining.abort();
    await expect.poll(async () => (await readQueueStatus(jobs)).waiting).toBe(0);
    stopping.abort();
    expect(await submitted).toMatchObject({ outcomes: [], stop: { kind: "interrupted" } });
    expect(events).toContainEqual(
      expect.objectContaining({ kind: "attempt-ended", ending: { kind: "cancelled" } }),
    );
  });

  it("goes on with another worker when one gives its attempts back", async () => {
    const queue = await TestQueue.open(server, { count: 1 });
    const first = await queue.work({ runner: endlessRunner() });
    const submitted = queue.submit();
    await expect.poll(() => first.events.map(({ kind }) => kind)).toContain("attempt-started");
    first.stop();
    await first.ended;
    expect(first.events).toContainEqual(
      expect.objectContaining({ kind: "attempt-ended", ending: { kind: "returned" } }),
    );
    await queue.work();
    expect((await submitted).outcomes).toMatchObject([{ task: "task-1", reward: 1 }]);
  });

  it("takes a result that was put into the store before, and runs nothing for it", async () => {
    const queue = await TestQueue.open(server, { count: 1 });
    const { redis } = await queue.connect();
    const first = await queue.work();
    const store = await queue.store();
    const unreadable: ObjectStore = {
      name: "a store that cannot be read",
      put: async (key, object) => await store.put(key, object),
      get: async () => {
        throw new BrigError("it cannot be read", { code: "store.failed" });
      },
      has: async (key) => await store.has(key),
      remove: async (key) => await store.remove(key),
    };
    await expect(queue.submit({}, unreadable)).rejects.toMatchObject({ code: "store.failed" });
    // As if Redis had been lost as well: what is done is done.
    await redis.flushdb();
    expect((await queue.submit()).outcomes).toHaveLength(1);
    expect(first.events.filter(({ kind }) => kind === "attempt-started")).toHaveLength(1);
  });

  it("ends with the reason when a worker cannot run its attempts", async () => {
    const queue = await TestQueue.open(server, { count: 1 });
    const broken = {
      run: async () => {
        throw new Error("this machine has no such thing");
      },
    };
    await queue.work({ runner: broken });
    await expect(queue.submit()).rejects.toMatchObject({
      code: "usage.invalid",
      message: expect.stringMatching(
        /^the worker worker-\d+-\w+ cannot run.*this machine has no such thing$/,
      ),
    });
  });

  it("ends when its run is cancelled, and goes on when it is submitted again", async () => {
    const queue = await TestQueue.open(server);
    const stuck = await queue.work({ runner: endlessRunner() });
    const submitted = queue.submit();
    const ended = expect(submitted).rejects.toMatchObject({ code: "aborted" });
    await expect.poll(() => stuck.events.map(({ kind }) => kind)).toContain("attempt-started");
    const { queue: jobs } = await queue.connect();
    const status = await readQueueStatus(jobs);
    const [attempt] = status.running;
    expect(attempt).toMatchObject({ attempt: 1, isStalled: false, worker: status.workers.at(-1)?.id });
    expect(await cancelRun(jobs, attempt?.run ?? "")).toMatchObject({ running: 1 });
    await ended;
    stuck.stop();
    await stuck.ended;
    await queue.work();
    expect((await queue.submit()).outcomes).toHaveLength(3);
    await expect(cancelRun(jobs, "0000000000000000")).rejects.toMatchObject({ code: "usage.invalid" });
  });

  it("says what it knows although others have written what nobody can read", async () => {
    const queue = await TestQueue.open(server, { count: 1 });
    await queue.work();
    await queue.submit();
    const { queue: jobs, redis } = await queue.connect();
    const known = (await readQueueStatus(jobs)).runs.length;
    for (const text of ["{", "", "null", "[".repeat(100_000)]) {
      await redis.multi().sadd("brig:workers", "w").set("brig:worker:w", text).exec();
      await redis.multi().sadd("brig:runs", "r").set("brig:run:r", text).exec();
      const { workers, runs } = await readQueueStatus(jobs);
      expect([workers.some(({ id }) => id === "w"), runs.length]).toEqual([false, known]);
    }
  });

  it("refuses files of a task that are not those that were submitted", async () => {
    const queue = await TestQueue.open(server, { count: 1 });
    const submitted = queue.submit();
    const refused = expect(submitted).rejects.toMatchObject({ message: /is not what was put there/ });
    const packages = join(queue.folder, "store/packages");
    // Only now does the package have its name for good.
    await expect.poll(async () => (await readQueueStatus((await queue.connect()).queue)).waiting).toBe(1);
    const [name = ""] = await readdir(packages);
    await writeFile(join(packages, name), "another archive");
    await queue.work();
    await refused;
    expect(storeKeys.package(name.slice(0, 64))).toBe(`packages/${name}`);
  });
});

describe.skipIf(!hasRedis)(withReason("a Redis server", whyNoRedis), () => {
  const failing = async (url: string) =>
    await connectRedis(readRedisAddress(url)).then(
      () => null,
      (error: unknown) => error,
    );

  it("that wants a password refuses a wrong one, which is in no part of the error", async () => {
    const error = await failing(server.url.replace("://", "://:not-the-password@"));
    expect(error).toMatchObject({ code: "queue.unreachable", message: /WRONGPASS/ });
    expect(JSON.stringify(error, Object.getOwnPropertyNames(error))).not.toContain("not-the-password");
    expect(await failing(server.url)).toMatchObject({ code: "queue.unreachable", message: /NOAUTH/ });
  });

  it("that is not there is an error at once", async () => {
    expect(await failing("redis://127.0.0.1:1")).toMatchObject({ message: /ECONNREFUSED/ });
  });

  it("with TLS is trusted only with its certificate", async () => {
    await using tls = await RedisServer.start({ usesTls: true });
    expect(await failing(tls.urlWithPassword)).toMatchObject({
      code: "queue.unreachable",
      message: /certificate/,
    });
    const ca = await readFile(tls.ca, "utf8");
    const redis = await connectRedis(readRedisAddress(tls.urlWithPassword, { ca }));
    expect(await redis.ping()).toBe("PONG");
    redis.disconnect();
  });
});
