import { describe, expect, it } from "vitest";
import { create, id, nameOf, volume } from "./created-tree.js";

describe("a tree", () => {
  it("has its volumes and a keeper, which is proved", async () => {
    const { tree, engine, plan, warnings } = await create();
    await tree.ready();
    expect(engine.volumes.created.toSorted()).toEqual(["merged", "upper", "work"].map(volume));
    expect(engine.containers.map(nameOf)).toEqual([`brig-${id}-keeper-N`]);
    expect(tree).toMatchObject({ id, workspace: plan.overlay.lower, isBroken: false, startedAt: 4242n });
    expect(tree.identity).toEqual({ dev: "77", ino: "5" });
    const context = await tree.keeper();
    expect(context).toMatchObject({ cwd: "/", env: {} });
    await tree.close({ keep: false });
    expect(engine.volumes.removed).toEqual([volume("merged"), volume("upper"), volume("work")]);
    expect(engine.containers[0]).toMatchObject({ state: "gone", runner: { wasEnded: true } });
    expect(warnings).toEqual([]);
  });

  it("may keep its volumes", async () => {
    const { tree, engine } = await create();
    await tree.ready();
    await tree.close({ keep: true });
    expect(engine.volumes.removed).toEqual([]);
    expect(engine.containers[0]?.state).toBe("gone");
  });

  it("says nothing about itself before it is ready", async () => {
    const { tree } = await create();
    expect(() => tree.startedAt).toThrow(TypeError);
    await tree.ready();
    await tree.close({ keep: false });
  });

  it("leaves out what a sandbox has mounted in the workspace", async () => {
    const { tree, plan } = await create();
    const { lower } = plan.overlay;
    const mounts = [`${lower}/m`, lower, "/elsewhere", `${lower}x/y`].map((path) => ({
      path,
      kind: "writable-root",
    }));
    tree.use({ mounts, absentNames: [`${lower}/.codex`], emptyFiles: [`${lower}/more`] } as never);
    tree.use({ mounts: [], absentNames: [`${lower}/.codex`, `${lower}/.brig`], emptyFiles: [] } as never);
    expect(tree.leftOut).toEqual(["m", ".codex", "more", ".brig"]);
    await tree.close({ keep: false });
  });

  it("is the one that a sandbox sees, or the sandbox is refused", async () => {
    const { tree } = await create();
    await tree.ready();
    const seen = (dev: string, ino: string) => ({ directories: new Map([["/w", { dev, ino }]]) }) as never;
    const plan = { overlay: { path: "/w" } } as never;
    tree.requireSame(plan, seen("77", "5"));
    const refusal = expect.objectContaining({
      code: "policy.not-enforced",
      hint: expect.stringContaining("bind"),
    });
    for (const [dev, ino] of [
      ["78", "5"],
      ["77", "6"],
    ] as const)
      expect(() => tree.requireSame(plan, seen(dev, ino))).toThrow(refusal);
    expect(() => tree.requireSame({ overlay: null } as never, seen("77", "5"))).toThrow(refusal);
    await tree.close({ keep: false });
  });
});

describe("a tree that cannot be made", () => {
  it.each([
    ["another owner", "77 5 40755 1 1001 4242"],
    ["another group", "77 5 40755 1000 1 4242"],
    ["another mode", "77 5 40750 1000 1001 4242"],
    ["no state", "nonsense"],
  ])(
    "is broken if its top directory has %s than the workspace's, and its keeper ends",
    async (_name, merged) => {
      const { tree, engine } = await create({ merged });
      await expect(tree.ready()).rejects.toMatchObject({
        code: "policy.not-enforced",
        message: "the workspace's tree did not get the workspace's owner and mode",
      });
      expect(tree.isBroken).toBe(true);
      expect(engine.containers[0]?.state).toBe("gone");
      await tree.close({ keep: false });
      expect(engine.volumes.removed).toHaveLength(3);
    },
  );

  it.each([["/merged"], ["/base"]])("is broken if only %s has a name at its top", async (directory) => {
    const { tree } = await create({
      change(engine) {
        engine.answer = ({ operation, path }) =>
          operation === "list" && path.toString() !== directory ? { result: Buffer.alloc(0) } : null;
      },
    });
    await expect(tree.ready()).rejects.toMatchObject({
      code: "policy.not-enforced",
      message: "the workspace's tree does not have the names of the workspace",
    });
    await tree.close({ keep: false });
  });

  it("may have the mount points of a sandbox at its top", async () => {
    const { tree } = await create({
      change(engine) {
        engine.answer = ({ operation, path }) =>
          operation === "list" && path.toString() === "/base" ? { result: Buffer.alloc(0) } : null;
      },
    });
    tree.use({
      mounts: [{ path: `${tree.workspace}/same/below`, kind: "writable-root" }],
      absentNames: [],
      emptyFiles: [],
    } as never);
    await tree.ready();
    await tree.close({ keep: false });
  });

  it("is broken if its keeper cannot be started, which leaves no container", async () => {
    const { tree, engine } = await create({
      change(engine) {
        engine.before = (what) => {
          if (what === "start container") throw new Error("cannot start");
        };
      },
    });
    await expect(tree.ready()).rejects.toThrow("cannot start");
    expect([tree.isBroken, engine.containers[0]?.state]).toEqual([true, "gone"]);
    await expect(tree.keeper()).rejects.toThrow("cannot start");
    await tree.close({ keep: false });
  });

  it("is broken if the kernel does not enforce the plan of its keeper", async () => {
    const { tree, engine } = await create({
      change(engine) {
        const { reported } = engine;
        engine.reported = (container) =>
          new Map([...reported(container), ["/proc/sys/kernel/hostname", "other\n"]]);
      },
    });
    await expect(tree.ready()).rejects.toMatchObject({ code: "policy.not-enforced" });
    expect(engine.containers[0]?.state).toBe("gone");
    await tree.close({ keep: false });
  });
});

describe("a fork", () => {
  const identity = { dev: "77", ino: "9" };

  it("is filled by its first keeper before it is ready", async () => {
    const filled: unknown[] = [];
    const origin = {
      tree: { id: "other", identity },
      fill: async (keeper: object) => void filled.push(keeper),
    };
    const { tree, engine } = await create({ origin, from: "77 9 40755 0 0 1" });
    await tree.ready();
    expect(filled).toEqual([await tree.keeper()]);
    expect(JSON.stringify(engine.containers[0]?.body)).toContain("brig-other-merged");
    await tree.close({ keep: false });
  });

  it.each([["78 9"], ["77 8"]])("is broken if its keeper sees another tree: %s", async (seen) => {
    const fill = async () => {
      throw new Error("never");
    };
    const origin = { tree: { id: "other", identity }, fill };
    const { tree, engine } = await create({ origin, from: `${seen} 40755 0 0 1` });
    await expect(tree.ready()).rejects.toMatchObject({
      message: "the keeper of a fork does not see the tree that was forked",
    });
    expect([tree.isBroken, engine.containers[0]?.state]).toEqual([true, "gone"]);
    await tree.close({ keep: false });
  });

  it("is broken if it cannot be filled", async () => {
    const fill = async () => {
      throw new Error("full");
    };
    const { tree } = await create({
      origin: { tree: { id: "other", identity }, fill },
      from: "77 9 40755 0 0 1",
    });
    await expect(tree.ready()).rejects.toThrow("full");
    expect(tree.isBroken).toBe(true);
    await tree.close({ keep: false });
  });
});
