import { describe, expect, it } from "vitest";
import { BrigError } from "../../../../src/errors.js";
import { RefusedRequest } from "../../../../src/sandbox/docker/engine-failure.js";
import { create, id, nameOf } from "./created-tree.js";

describe("the keeper of a tree", () => {
  it("that has ended is replaced once, whoever asks", async () => {
    const { tree, engine } = await create();
    await tree.ready();
    const first = await tree.keeper();
    expect(await tree.keeper()).toBe(first);
    const [container] = engine.containers;
    if (container) engine.end(container);
    const [one, other] = await Promise.all([tree.keeper(), tree.keeper()]);
    expect(one).toBe(other);
    expect(one).not.toBe(first);
    expect(engine.containers.map(nameOf)).toEqual(Array(2).fill(`brig-${id}-keeper-N`));
    expect(engine.containers[0]?.name).not.toBe(engine.containers[1]?.name);
    expect(engine.containers.map(({ state }) => state === "gone")).toEqual([true, false]);
    expect(JSON.stringify(engine.containers[1]?.body)).not.toContain("copy-rights");
    await tree.close({ keep: false });
  });

  it("is tried again if it cannot be replaced", async () => {
    const { tree, engine } = await create();
    await tree.ready();
    const [container] = engine.containers;
    if (container) engine.end(container);
    engine.before = (what) => {
      // An answer, after which nobody waits for the container to appear all the same.
      if (what === "create container")
        throw new BrigError("full", { code: "engine.failed", cause: new RefusedRequest(500, "full") });
    };
    await expect(tree.keeper()).rejects.toThrow("full");
    engine.before = () => undefined;
    expect(await tree.keeper()).toMatchObject({ cwd: "/" });
    await tree.close({ keep: false });
  });

  it("is not replaced once the tree is closed", async () => {
    const { tree, engine } = await create();
    await tree.ready();
    await tree.close({ keep: true });
    await expect(tree.keeper()).rejects.toMatchObject({ code: "sandbox.gone" });
    expect(engine.containers).toHaveLength(1);
  });
});

describe("an applier of a tree", () => {
  it("is a container of its own until it is closed", async () => {
    const { tree, engine } = await create();
    await tree.ready();
    const applier = await tree.openApplier();
    expect(nameOf(engine.containers[1])).toBe(`brig-${id}-applier-N`);
    expect(engine.containers[1]?.body.User).toBe(
      process.getuid?.() === 0 ? "1000:1001" : `${process.getuid?.()}:${process.getgid?.()}`,
    );
    await applier.context.link.ping();
    const removed: string[] = [];
    engine.before = (what, name) => void (what === "remove container" && removed.push(name));
    await applier.close();
    expect(engine.containers.map(({ state }) => state === "gone")).toEqual([false, true]);
    await tree.close({ keep: false });
    // Each has ended when its runner was asked to, and what is closed is not ended again.
    expect(removed).toEqual([]);
  });

  it("ends with its tree, also while it is being started", async () => {
    const { tree, engine } = await create();
    await tree.ready();
    await tree.openApplier();
    const starting = tree.openApplier();
    const closing = tree.close({ keep: false });
    await Promise.all([starting, closing]);
    expect(engine.containers.map(({ state }) => state === "gone")).toEqual([true, true, true]);
    expect(engine.volumes.removed).toHaveLength(3);
    await expect(tree.openApplier()).rejects.toMatchObject({ code: "sandbox.gone", reason: "closed" });
    expect(engine.containers).toHaveLength(3);
  });

  it("that cannot be started does not keep its tree from being closed", async () => {
    const { tree, engine } = await create();
    await tree.ready();
    const signal = AbortSignal.abort(new Error("stop"));
    await expect(tree.openApplier({ signal })).rejects.toThrow("stop");
    await tree.close({ keep: false });
    expect(engine.containers.every(({ state }) => state === "gone")).toBe(true);
  });
});
