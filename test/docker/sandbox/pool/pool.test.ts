import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { describe, expect, it, onTestFinished } from "vitest";
import { packTar } from "../../../../src/sandbox/docker/calls/tar.js";
import { LABELS } from "../../../../src/sandbox/labels.js";
import { createPool, type PoolOptions } from "../../../../src/sandbox/pool.js";
import { testEngine } from "../../../support/engine.js";
import { testRuntime } from "../../../support/runtime-differences.js";

function openPool(options: PoolOptions = {}) {
  const warnings: Error[] = [];
  const pool = createPool({
    size: 2,
    runtime: testRuntime,
    onWarning: (warning) => warnings.push(warning),
    ...options,
  });
  onTestFinished(() => pool.close());
  return { pool, warnings };
}

describe("a pool", () => {
  it("hands over sandboxes that nobody has used, and starts others in their place", async () => {
    const { pool } = openPool();
    await pool.filled();
    await using one = await pool.acquire();
    await using other = await pool.acquire();
    expect(one.id).not.toBe(other.id);
    expect((await one.exec(["sh", "-c", "echo used > /tmp/x; cat /tmp/x"])).stdout).toBe("used\n");
    await pool.filled();
    await using third = await pool.acquire();
    expect([one.id, other.id]).not.toContain(third.id);
    expect((await third.exec(["ls", "/tmp"])).stdout).toBe("");
    expect(third.proof.differences).toEqual([]);
  });

  it("serves more callers than it has sandboxes, in their order", async () => {
    // Of two that are ready at the same moment, either may be looked at for longer.
    const { pool } = openPool({ size: 1, maxStartsAtOnce: 1 });
    const order: number[] = [];
    const all = await Promise.all(
      [1, 2, 3].map(async (number) => {
        const sandbox = await pool.acquire();
        order.push(number);
        return sandbox;
      }),
    );
    expect(new Set(all.map(({ id }) => id)).size).toBe(3);
    expect(order).toEqual([1, 2, 3]);
    await Promise.all(all.map((sandbox) => sandbox.close()));
  });

  it("replaces one that ends while nobody uses it", async () => {
    const { engine, pool, containers } = await openWatchedPool();
    const [ended = ""] = await containers();
    await engine.killContainer(ended);
    await using sandbox = await pool.acquire();
    expect(sandbox.containerId).not.toBe(ended);
    expect((await sandbox.exec(["true"])).exitCode).toBe(0);
  });

  it("does not hand over one in which somebody else has started a program", async () => {
    const { engine, pool, warnings, containers } = await openWatchedPool();
    const [entered = ""] = await containers();
    const { stream } = await engine.openExec(entered, ["sh", "-c", "echo ready; sleep 600"]);
    stream.on("error", () => undefined);
    await once(stream, "data");
    await using sandbox = await pool.acquire();
    expect(sandbox.containerId).not.toBe(entered);
    expect(warnings).toMatchObject([{ code: "policy.not-enforced" }]);
    await expect.poll(() => engine.inspectContainer(entered)).toBeNull();
  });

  it("does not hand over a sandbox of an image whose name stands for another one by now", async () => {
    const engine = await testEngine();
    const image = `brig-test-pool:${randomUUID()}`;
    await engine.tagImage("brig/base", image);
    onTestFinished(() => engine.removeImage(image));
    const { pool } = openPool({ size: 1, image });
    await pool.filled();
    const dockerfile = {
      path: "Dockerfile",
      mode: 0o644,
      content: Buffer.from("FROM brig/base\nENV NEW=1\n"),
    };
    await engine.buildImage(packTar([dockerfile]), { tag: image });
    await using sandbox = await pool.acquire();
    expect((await sandbox.exec(["printenv", "NEW"])).stdout).toBe("1\n");
  });

  it("tells the caller why a sandbox cannot be started, and tries again later", async () => {
    const image = `brig-test-pool:${randomUUID()}`;
    const { pool } = openPool({ size: 1, image });
    await expect(pool.acquire()).rejects.toMatchObject({ code: "image.missing" });
    const engine = await testEngine();
    await engine.tagImage("brig/base", image);
    onTestFinished(() => engine.removeImage(image));
    await expect.poll(() => pool.readyCount).toBe(1);
  });

  it("ends a wait that is aborted, and keeps the sandbox that was on its way", async () => {
    const { pool } = openPool({ size: 1 });
    const reason = new Error("changed my mind");
    const over = new AbortController();
    const waiting = pool.acquire({ signal: over.signal });
    over.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    await pool.filled();
    expect(pool.readyCount).toBe(1);
    await expect(pool.acquire({ signal: over.signal })).rejects.toBe(reason);
    expect(pool.readyCount).toBe(1);
  });

  it("leaves nothing when it is closed, ready or starting, and ends the calls that wait", async () => {
    const { pool, containers } = await openWatchedPool({ size: 2 });
    const taken = await pool.acquire();
    const waiting = [pool.acquire(), pool.acquire(), pool.acquire()].map((one) =>
      one.catch((error) => error),
    );
    await pool.close();
    await pool.close();
    const outcomes = await Promise.all(waiting);
    for (const outcome of outcomes)
      if (outcome instanceof Error) expect(outcome).toMatchObject({ code: "usage.invalid" });
      else await outcome.close();
    expect(await containers()).toEqual([taken.containerId]);
    expect((await taken.exec(["true"])).exitCode).toBe(0);
    await taken.close();
    await expect(pool.acquire()).rejects.toMatchObject({ code: "usage.invalid" });
    await expect(pool.filled()).rejects.toMatchObject({ code: "usage.invalid" });
  });

  it.for([
    ["a size of none", { size: 0 }],
    ["a size that is no number", { size: Number.NaN }],
    ["an unknown option", { sizes: 3 }],
    ["a workspace", { workspace: "/tmp" }],
    ["a workspace of a kind", { workspaceKind: "bind" }],
  ])("refuses %s", ([, options]) => {
    expect(() => createPool(options as PoolOptions)).toThrow(
      expect.objectContaining({ code: "usage.invalid" }),
    );
  });
});

/** A pool that is full, and the containers that were started since it was opened. */
async function openWatchedPool(options: PoolOptions = { size: 1 }) {
  const engine = await testEngine();
  const own = async () =>
    (await engine.listContainers([`${LABELS.ownerPid}=${process.pid}`])).map(({ id }) => id);
  const before = new Set(await own());
  const opened = openPool(options);
  await opened.pool.filled();
  return { ...opened, engine, containers: async () => (await own()).filter((id) => !before.has(id)) };
}
