import { describe, expect, it, onTestFinished } from "vitest";
import { endlessRunner } from "../../support/played-attempts.js";
import { TestQueue } from "../../support/queues.js";
import { hasRedis, RedisServer, whyNoRedis } from "../../support/redis-server.js";
import { withReason } from "../../support/skip-reasons.js";

/** A server of its own, which the test kills. */
async function ownServer(): Promise<RedisServer> {
  const server = await RedisServer.start();
  onTestFinished(async () => await server[Symbol.asyncDispose]());
  return server;
}

// Without redis-server, which npm test installs if it can, there is nothing to test with.
describe.skipIf(!hasRedis)(withReason("while Redis is gone", whyNoRedis), () => {
  it("a worker with nothing to do ends when it is told to", async () => {
    const server = await ownServer();
    const queue = await TestQueue.open(server);
    const worker = await queue.work();
    await expect.poll(() => worker.events.map(({ kind }) => kind)).toContain("started");
    await server.kill();
    worker.drain();
    await expect.poll(() => worker.events.map(({ kind }) => kind)).toContain("draining");
    worker.stop();
    await worker.ended;
  });

  it("a worker that runs an attempt ends when it is told to, and so does its submitter", async () => {
    const server = await ownServer();
    const queue = await TestQueue.open(server, { count: 2 });
    const worker = await queue.work({ runner: endlessRunner() });
    const stop = new AbortController();
    const submitted = queue.submit({ signal: stop.signal, drain: stop.signal });
    await expect.poll(() => worker.events.map(({ kind }) => kind)).toContain("attempt-started");
    await server.kill();
    worker.stop();
    stop.abort();
    expect((await submitted).stop).toEqual({ kind: "interrupted" });
    await worker.ended;
  });
});
