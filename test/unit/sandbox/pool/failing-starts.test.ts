import { expect, it } from "vitest";
import { readEnvironment } from "../../../../src/lib/env.js";
import { connectEngine } from "../../../../src/sandbox/docker/connect.js";
import { createPool } from "../../../../src/sandbox/pool.js";
import { fakeEngine, reply } from "../../../support/fake-engine.js";

/** A pool on an engine that refuses everything but to say which one it is, and the warnings of the pool. */
async function failingPool({ size = 1 } = {}) {
  const engine = await fakeEngine((_, response) => reply(response, 500, { message: "no" }));
  const warnings: string[] = [];
  const pool = createPool({
    size,
    engine: connectEngine({ env: readEnvironment(), endpoint: engine.address }),
    onWarning: ({ message }: { message: string }) => warnings.push(message),
  });
  return { engine, pool, warnings };
}

const failure = (promise: Promise<unknown>) =>
  promise.then(
    () => null,
    (error: unknown) => error,
  );

it("each caller gets the failure of a start of its own", async () => {
  const { engine, pool, warnings } = await failingPool();
  await using _engine = engine;
  await using _pool = pool;
  const errors = await Promise.all([failure(pool.acquire()), failure(pool.acquire())]);
  for (const error of errors) expect(error).toMatchObject({ code: "engine.failed" });
  // All three starts fail at the same answer of the engine. Nobody waits for the one that fills the pool.
  await expect.poll(() => warnings.length).toBeGreaterThan(0);
  expect(warnings).toHaveLength(1);
});

it("who waits until it is full gets the failure, which then is no warning", async () => {
  const { engine, pool, warnings } = await failingPool();
  await using _engine = engine;
  await using _pool = pool;
  expect(await failure(pool.filled())).toMatchObject({ code: "engine.failed" });
  expect(warnings).toEqual([]);
});

it("a pool that is closed refuses calls, and ends those that wait", async () => {
  const { engine, pool, warnings } = await failingPool({ size: 2 });
  await using _engine = engine;
  const waiting = [failure(pool.acquire()), failure(pool.filled())];
  await pool.close();
  waiting.push(failure(pool.acquire()), failure(pool.filled()));
  for (const error of await Promise.all(waiting)) expect(error).toMatchObject({ code: "usage.invalid" });
  await pool.close();
  expect(pool.readyCount).toBe(0);
  expect(warnings).toEqual([]);
});

it.for([0, 1001, 1.5, Number.NaN])("a pool has no size of %s", (size) => {
  expect(() => createPool({ size })).toThrow(expect.objectContaining({ code: "usage.invalid" }));
});
