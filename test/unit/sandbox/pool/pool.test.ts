import { describe, expect, it, onTestFinished, vi } from "vitest";
import { BrigError } from "../../../../src/errors.js";
import { createPool, type PoolOptions } from "../../../../src/sandbox/pool.js";
import { failure, playedPlace } from "../played-sandbox.js";

const refused = new BrigError("no", { code: "engine.failed" });
async function playedPool({ before, ...options }: PoolOptions & { before?: (place: Place) => void } = {}) {
  const place = await playedPlace();
  vi.stubEnv("BRIG_HOME", place.brigHome);
  place.engine.onCreated = ({ sections }) => void sections.set("processes", "runner\0");
  before?.(place);
  const pool = createPool({
    onWarning: (warning) => place.warnings.push(warning),
    ...options,
    engine: place.engine.asEngine,
  });
  onTestFinished(async () => await pool.close());
  return { ...place, pool };
}
type Place = Awaited<ReturnType<typeof playedPlace>>;

describe("a pool", () => {
  it("starts as many sandboxes as it has room for, and no more", async () => {
    const { engine, pool, warnings } = await playedPool({ size: 3 });
    expect(pool.readyCount).toBe(0);
    await pool.filled();
    expect(pool.readyCount).toBe(3);
    expect(engine.containers).toHaveLength(3);
    await pool.filled();
    expect(engine.containers).toHaveLength(3);
    await pool.close();
    expect(engine.running).toEqual([]);
    expect(pool.readyCount).toBe(0);
    expect(warnings).toEqual([]);
  });

  it("has four by default", async () => {
    const { engine, pool } = await playedPool();
    await pool.filled();
    expect(pool.readyCount).toBe(4);
    expect(engine.containers).toHaveLength(4);
  });

  it("hands each sandbox over once, the oldest first, and starts another one in its place", async () => {
    const { engine, pool } = await playedPool({ size: 2 });
    await pool.filled();
    const first = await pool.acquire();
    const second = await pool.acquire();
    expect([first.containerId, second.containerId].sort()).toEqual(
      engine.containers.slice(0, 2).map(({ id }) => id),
    );
    expect((await first.exec(["true"])).exitCode).toBe(0);
    await pool.filled();
    expect(pool.readyCount).toBe(2);
    expect(engine.containers).toHaveLength(4);
    await pool.close();
    // Those that were handed over are their callers'.
    expect(engine.running.map(({ id }) => id)).toEqual(engine.containers.slice(0, 2).map(({ id }) => id));
    await Promise.all([first.close(), second.close()]);
    expect(engine.running).toEqual([]);
  });

  it("is filled again some time after a sandbox was taken, and when it is closed, without anybody waiting", async () => {
    const { engine, pool } = await playedPool({ size: 1 });
    await pool.filled();
    const sandbox = await pool.acquire();
    expect(pool.readyCount).toBe(0);
    await expect.poll(() => pool.readyCount).toBe(1);
    await sandbox.close();
    expect(engine.containers).toHaveLength(2);
    expect(engine.running).toHaveLength(1);
  });

  it("gives who waits a sandbox in the order of the calls", async () => {
    const { pool } = await playedPool({ size: 1 });
    const order: number[] = [];
    const sandboxes = await Promise.all(
      [0, 1, 2].map(async (index) => {
        const sandbox = await pool.acquire();
        order.push(index);
        return sandbox;
      }),
    );
    expect(order).toEqual([0, 1, 2]);
    expect(new Set(sandboxes.map(({ id }) => id)).size).toBe(3);
    await Promise.all(sandboxes.map((one) => one.close()));
  });

  it("drops a sandbox that ends while nobody uses it, and starts another", async () => {
    const { engine, pool, warnings } = await playedPool({ size: 1 });
    await pool.filled();
    engine.end(engine.container);
    await expect.poll(() => engine.containers.length).toBe(2);
    await expect.poll(() => pool.readyCount).toBe(1);
    expect(warnings).toEqual([]);
    const sandbox = await pool.acquire();
    expect(sandbox.containerId).toBe(engine.containers[1]?.id);
    await sandbox.close();
  });

  it.for<[string, string | null]>([
    ["a program that brig has not started", "runner\0evil\0"],
    ["no list of what runs in it", null],
  ])("hands none over that has %s", async ([, processes]) => {
    const { engine, pool, warnings } = await playedPool({
      size: 1,
    });
    await pool.filled();
    const { sections } = engine.container;
    if (processes === null) sections.delete("processes");
    else sections.set("processes", processes);
    const sandbox = await pool.acquire();
    expect(sandbox.containerId).toBe(engine.containers[1]?.id);
    expect(engine.containers[0]?.state).toBe("gone");
    expect(warnings).toEqual([
      expect.objectContaining({
        code: "policy.not-enforced",
        message: expect.stringContaining(
          processes === null ? "does not say what runs" : '"evil", which runs',
        ),
      }),
    ]);
    await sandbox.close();
  });

  it("hands none over whose kernel has changed its mind about the policy", async () => {
    const { engine, pool, warnings } = await playedPool({ size: 1 });
    await pool.filled();
    engine.container.sections.set("/proc/sys/kernel/hostname", "elsewhere\n");
    const sandbox = await pool.acquire();
    expect(sandbox.containerId).toBe(engine.containers[1]?.id);
    expect(warnings).toEqual([
      expect.objectContaining({
        code: "policy.not-enforced",
        message: expect.stringContaining("A9-hostname"),
      }),
    ]);
    await sandbox.close();
  });

  it("hands none over of an image whose name stands for another one by now, and does not warn of it", async () => {
    const { engine, pool, warnings } = await playedPool({ size: 1 });
    await pool.filled();
    engine.imageId = `sha256:${"2".repeat(64)}`;
    const sandbox = await pool.acquire();
    expect(sandbox.containerId).toBe(engine.containers[1]?.id);
    expect(sandbox.proof.imageId).toBe(engine.imageId);
    expect(engine.containers[0]?.state).toBe("gone");
    expect(warnings).toEqual([]);
    await sandbox.close();
  });

  it("warns of nothing where the sandbox has ended while it is looked at", async () => {
    const { engine, pool, warnings } = await playedPool({ size: 1 });
    await pool.filled();
    const inspect = engine.inspectImage;
    engine.inspectImage = async (ref) => {
      engine.inspectImage = inspect;
      engine.end(engine.container);
      return await inspect(ref);
    };
    const sandbox = await pool.acquire();
    expect(sandbox.containerId).toBe(engine.containers[1]?.id);
    expect(warnings).toEqual([]);
    await sandbox.close();
  });

  it("warns of a sandbox that it cannot remove, and goes on", async () => {
    const { engine, pool, warnings } = await playedPool({ size: 1 });
    await pool.filled();
    engine.container.sections.set("processes", "evil\0");
    const remove = engine.removeContainer;
    const wait = engine.waitRemoved;
    engine.waitRemoved = engine.removeContainer = async () => {
      throw refused;
    };
    const sandbox = await pool.acquire();
    await expect.poll(() => warnings.length).toBe(2);
    expect(warnings[1]).toMatchObject({ code: "engine.failed", cause: refused });
    Object.assign(engine, { removeContainer: remove, waitRemoved: wait });
    await sandbox.close();
  });
});

describe("a wait for a pool", () => {
  it("ends with its signal, and what was on its way stays in the pool", async () => {
    const { engine, pool } = await playedPool({ size: 1 });
    const controller = new AbortController();
    const reason = new Error("enough");
    const waiting = failure(pool.acquire({ signal: controller.signal }));
    const filling = failure(pool.filled({ signal: controller.signal }));
    controller.abort(reason);
    expect(await waiting).toBe(reason);
    expect(await filling).toBe(reason);
    await pool.filled();
    expect(engine.containers.length).toBeLessThanOrEqual(2);
    const { length } = engine.containers;
    const sandbox = await pool.acquire();
    expect(engine.containers.slice(0, length).map(({ id }) => id)).toContain(sandbox.containerId);
    await sandbox.close();
  });

  it("of which the signal is aborted already takes no sandbox", async () => {
    const { pool } = await playedPool({ size: 1 });
    await pool.filled();
    const signal = AbortSignal.abort(new Error("before"));
    expect(await failure(pool.acquire({ signal }))).toBe(signal.reason);
    expect(pool.readyCount).toBe(1);
  });

  it("ends while the sandbox is looked at, which then stays in the pool if it is fit", async () => {
    const { engine, pool, warnings } = await playedPool({ size: 1 });
    await pool.filled();
    const controller = new AbortController();
    const inspect = engine.inspectImage;
    engine.inspectImage = async (ref) => {
      engine.inspectImage = inspect;
      controller.abort(new Error("enough"));
      return await inspect(ref);
    };
    expect(await failure(pool.acquire({ signal: controller.signal }))).toBe(controller.signal.reason);
    await expect.poll(() => pool.readyCount).toBe(1);
    const sandbox = await pool.acquire();
    expect(sandbox.containerId).toBe(engine.containers[0]?.id);
    expect(warnings).toEqual([]);
    await sandbox.close();
  });

  it("ends while the sandbox is looked at, which is dropped if it is not fit", async () => {
    const { engine, pool } = await playedPool({ size: 1 });
    await pool.filled();
    const controller = new AbortController();
    engine.imageId = `sha256:${"2".repeat(64)}`;
    const inspect = engine.inspectImage;
    engine.inspectImage = async (ref) => {
      engine.inspectImage = inspect;
      controller.abort(new Error("enough"));
      return await inspect(ref);
    };
    expect(await failure(pool.acquire({ signal: controller.signal }))).toBe(controller.signal.reason);
    await expect.poll(() => engine.containers[0]?.state).toBe("gone");
    await pool.filled();
    expect(pool.readyCount).toBe(1);
  });

  it.for(["acquire", "filled"] as const)("by %s takes no option that there is not", async (call) => {
    const { pool } = await playedPool({ size: 1 });
    const options = { sginal: 1 } as object;
    expect(await failure(pool[call](options))).toMatchObject({ code: "usage.invalid" });
  });
});

describe("starts of a pool that fail", () => {
  it("are a warning each while nobody waits, and are tried again after a pause", async () => {
    let attempts = 0;
    const { pool, warnings } = await playedPool({
      size: 1,
      before: ({ engine }) => {
        const create = engine.createContainer;
        engine.createContainer = async (...args) => {
          if (++attempts > 1) return await create(...args);
          throw engineRefusal();
        };
      },
    });
    await expect.poll(() => warnings.length).toBe(1);
    expect(pool.readyCount).toBe(0);
    expect(attempts).toBe(1);
    await expect.poll(() => pool.readyCount).toBe(1);
    expect(attempts).toBe(2);
    expect(warnings).toHaveLength(1);
  });

  it("are the caller's, who has a start of its own also during that pause", async () => {
    let isRefusing = true;
    const { engine, pool, warnings } = await playedPool({
      size: 1,
      before: ({ engine }) => {
        const create = engine.createContainer;
        engine.createContainer = async (...args) => {
          if (!isRefusing) return await create(...args);
          throw engineRefusal();
        };
      },
    });
    await expect.poll(() => warnings.length).toBe(1);
    expect(await failure(pool.acquire())).toMatchObject({ code: "engine.failed" });
    expect(warnings).toHaveLength(1);
    isRefusing = false;
    const sandbox = await pool.acquire();
    expect(engine.containers).toHaveLength(1);
    await sandbox.close();
  });

  it("are of no interest once the pool is closed", async () => {
    const { engine, pool, warnings } = await playedPool({ size: 2 });
    const waiting = failure(pool.acquire());
    await pool.close();
    expect(await waiting).toMatchObject({ code: "usage.invalid", hint: "create another one" });
    expect(warnings).toEqual([]);
    expect(engine.running).toEqual([]);
  });
});

function engineRefusal(): BrigError {
  return new BrigError("no", {
    code: "engine.failed",
    cause: Object.assign(new Error("no"), { code: "ECONNREFUSED" }),
  });
}

it.for([
  [{ size: 0 }, "whole number from 1 to 1000"],
  [{ workspaceKind: "bind" }, "no workspace"],
  [{ szie: 1 }, "szie"],
] as const)("a pool with %j is refused before anything is started", ([options, words]) => {
  expect(() => createPool(options as PoolOptions)).toThrow(
    expect.objectContaining({ code: "usage.invalid", message: expect.stringContaining(words) }),
  );
});
