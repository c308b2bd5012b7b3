import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { ownerOf, readHostProcesses } from "../../../../src/lib/owner.js";
import { RefusedRequest } from "../../../../src/sandbox/docker/engine-failure.js";
import { keeperPlan, type OverlaidPlan } from "../../../../src/sandbox/overlay/overlay-tree.js";
import { SharedTree, type TreeOrigin } from "../../../../src/sandbox/overlay/shared-tree.js";
import { planFor } from "../plan/plan-fixture.js";
import { TreeEngine, treeReport } from "./tree-engine.js";

function folder(): string {
  const path = realpathSync(mkdtempSync(join(tmpdir(), "brig-shared-")));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** An engine on which the trees of a shared tree can be opened. */
async function sharing({ leaseSeconds = 60, origin }: { leaseSeconds?: number; origin?: TreeOrigin } = {}) {
  const [brigHome, repo] = [folder(), join(folder(), "repo")];
  mkdirSync(repo);
  const shared = new SharedTree({ leaseSeconds, origin });
  const plan = (await planFor(repo, { overlay: { id: shared.id } })) as OverlaidPlan;
  const engine = new TreeEngine();
  engine.reported = () => {
    const { dev, ino } = plan.overlay.identity;
    const from = origin?.tree.id;
    const stats = {
      "/merged": "77 5 40755 1 2 3",
      "/base": `${dev} ${ino} 40755 1 2 3`,
      ...(from && { "/from": "8 9 40755 1 2 3" }),
    };
    return treeReport(keeperPlan(plan, { isFirst: true, labels: {}, from }), stats);
  };
  const warnings: unknown[] = [];
  const owner = await ownerOf(process.pid, await readHostProcesses(hostname()));
  const opening = {
    ...{
      engine: engine.asEngine,
      plan,
      toolbox: { volume: "brig-toolbox", directory: null },
      imageId: engine.imageId,
    },
    ...{ warn: (warning: unknown) => void warnings.push(warning), recordFor: { brigHome, owner } },
  };
  const records = () => filesBelow(brigHome);
  return { shared, engine, opening, warnings, records, brigHome, plan };
}

function filesBelow(directory: string): string[] {
  if (!existsSync(directory)) return [];
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => name);
}

const volumes = ({ volumes: { created, removed } }: TreeEngine) => [created.length, removed.length];

describe("the tree of a session", () => {
  it("is created by the first sandbox, and is the same for all", async () => {
    const { shared, engine, opening, records, plan } = await sharing();
    expect(shared.isOpen).toBe(false);
    shared.hold();
    expect(shared.isOpen).toBe(false);
    const tree = await shared.open(opening);
    await tree.ready();
    expect(shared.isOpen).toBe(true);
    expect(tree.id).toBe(shared.id);
    expect(records()).toEqual([expect.stringContaining(shared.id)]);
    shared.hold();
    const mounts = [{ path: `${plan.overlay.lower}/m`, kind: "writable-root" }] as never;
    expect(await shared.open({ ...opening, plan: { ...plan, mounts } })).toBe(tree);
    expect(tree.leftOut).toContain("m");
    await shared.release();
    expect([shared.isOpen, ...volumes(engine)]).toEqual([true, 3, 0]);
    await shared.release();
    expect([shared.isOpen, ...volumes(engine)]).toEqual([false, 3, 3]);
    expect(records()).toEqual([]);
  });

  it("is another one after it was closed, with the same id", async () => {
    const { shared, opening } = await sharing();
    shared.hold();
    const first = await shared.open(opening);
    await shared.release();
    shared.hold();
    const second = await shared.open(opening);
    expect(second).not.toBe(first);
    expect(second.id).toBe(first.id);
    await shared.release();
  });

  it("keeps its volumes and its record where there is no lease", async () => {
    const { shared, engine, opening, records } = await sharing({ leaseSeconds: 0 });
    shared.hold();
    await (await shared.open(opening)).ready();
    await shared.release();
    expect(volumes(engine)).toEqual([3, 0]);
    expect(records()).toHaveLength(1);
  });

  it("that was never opened is closed without the engine", async () => {
    const { shared, engine } = await sharing();
    shared.hold();
    await shared.release();
    expect(volumes(engine)).toEqual([0, 0]);
  });

  it("may be closed again if that has failed", async () => {
    const { shared, engine, opening, records } = await sharing();
    shared.hold();
    await (await shared.open(opening)).ready();
    engine.before = (what) => {
      if (what === "remove volume") throw new Error("busy");
    };
    await expect(shared.release()).rejects.toThrow("busy");
    expect([shared.isOpen, records().length]).toEqual([true, 1]);
    engine.before = () => undefined;
    await shared.release();
    expect([shared.isOpen, records().length]).toEqual([false, 0]);
  });

  it("is tried again by the next sandbox if it could not be created", async () => {
    const { shared, engine, opening, records } = await sharing();
    shared.hold();
    engine.before = (what) => {
      if (what === "create volume") throw new RefusedRequest(500, "full");
    };
    await expect(shared.open(opening)).rejects.toThrow("full");
    expect([shared.isOpen, records().length]).toEqual([false, 0]);
    engine.before = () => undefined;
    await (await shared.open(opening)).ready();
    await shared.release();
  });

  it.each<[string, (what: string) => void, number]>([
    [
      "the engine did not answer, and may create a volume later",
      (what) => {
        if (what === "create volume") throw new Error("cut");
      },
      0,
    ],
    [
      "a volume could not be removed again",
      (what) => {
        if (what === "create volume" || what === "remove volume") throw new RefusedRequest(500, "full");
      },
      1,
    ],
  ])("keeps its record if %s", async (_name, before, warned) => {
    const { shared, engine, opening, records, warnings } = await sharing();
    shared.hold();
    engine.before = before;
    await expect(shared.open(opening)).rejects.toThrow(/full|cut/);
    expect([records().length, warnings.length]).toEqual([1, warned]);
  });

  it.each(["upper", "work", "merged"])(
    "leaves no volume and no record if %s cannot be created",
    async (kind) => {
      const { shared, engine, opening, records } = await sharing();
      shared.hold();
      engine.before = (what, name) => {
        if (what === "create volume" && name?.endsWith(kind)) throw new RefusedRequest(500, "full");
      };
      await expect(shared.open(opening)).rejects.toThrow("full");
      expect(engine.volumes.removed).toEqual(
        ["merged", "upper", "work"].map((one) => `brig-${shared.id}-${one}`),
      );
      expect([records(), engine.containers]).toEqual([[], []]);
    },
  );

  it.each(["keeper", "applier"])("keeps its record if the engine may still have its %s", async (kind) => {
    const { shared, engine, opening, records, warnings } = await sharing();
    shared.hold();
    const { createContainer, inspectContainer } = engine;
    const fails = () => Promise.reject(new Error("cut"));
    const cut = () => Object.assign(engine, { createContainer: fails, inspectContainer: fails });
    if (kind === "keeper") cut();
    const tree = await shared.open(opening);
    if (kind === "applier") {
      await tree.ready();
      cut();
    }
    await expect(kind === "applier" ? tree.openApplier() : tree.ready()).rejects.toThrow("cut");
    Object.assign(engine, { createContainer, inspectContainer });
    await shared.release();
    expect(volumes(engine)).toEqual([3, 3]);
    expect([records().length, warnings.length]).toEqual([1, 1]);
  });

  it("that is broken is removed by the next sandbox, also if that has failed once", async () => {
    const { shared, engine, opening } = await sharing();
    shared.hold();
    engine.before = (what) => {
      if (what === "start container") throw new Error("cannot start");
      if (what === "remove volume") throw new Error("busy");
    };
    await expect((await shared.open(opening)).ready()).rejects.toThrow("cannot start");
    await expect(shared.open(opening)).rejects.toThrow("busy");
    expect(volumes(engine)).toEqual([3, 0]);
    engine.before = () => undefined;
    await (await shared.open(opening)).ready();
    expect(volumes(engine)).toEqual([6, 3]);
    await shared.release();
  });

  it("is another one for the next sandbox if its keeper could not be started", async () => {
    const { shared, engine, opening } = await sharing({ leaseSeconds: 0 });
    shared.hold();
    engine.before = (what) => {
      if (what === "start container") throw new Error("cannot start");
    };
    const broken = await shared.open(opening);
    await expect(broken.ready()).rejects.toThrow("cannot start");
    engine.before = () => undefined;
    const next = await shared.open(opening);
    expect(next).not.toBe(broken);
    await next.ready();
    // The volumes of the broken one are not kept.
    expect(volumes(engine)).toEqual([6, 3]);
    expect(await shared.open(opening)).toBe(next);
    await shared.release();
  });

  it("warns if it cannot be recorded, and opens all the same", async () => {
    const { shared, opening, warnings, brigHome } = await sharing();
    const file = join(brigHome, "file");
    writeFileSync(file, "");
    shared.hold();
    const tree = await shared.open({ ...opening, recordFor: { ...opening.recordFor, brigHome: file } });
    await tree.ready();
    expect(warnings).toHaveLength(1);
    await shared.release();
  });

  it("needs a plan with an overlay", async () => {
    const { shared, opening } = await sharing();
    shared.hold();
    await expect(shared.open({ ...opening, plan: { ...opening.plan, overlay: null } })).rejects.toThrow(
      TypeError,
    );
  });
});

describe("the tree of a fork", () => {
  async function forking() {
    const events: string[] = [];
    const parent = new SharedTree({ leaseSeconds: 60 });
    const counted = {
      hold: () => void events.push("hold"),
      release: async () => void events.push("release"),
    };
    const origin = {
      ...{
        plan: {},
        tree: { id: "parent", identity: { dev: "8", ino: "9" } },
        shared: Object.assign(parent, counted),
      },
      begin: () => {
        events.push("begin");
        return async () => void events.push("fill");
      },
    } as unknown as TreeOrigin;
    return { ...(await sharing({ origin })), events, origin };
  }

  it("holds the parent's until it is closed, and is a fork only once", async () => {
    const { shared, opening, events, origin } = await forking();
    expect(shared.origin).toBe(origin);
    shared.hold();
    await (await shared.open(opening)).ready();
    expect(events).toEqual(["hold", "begin", "fill"]);
    expect(shared.origin).toBeUndefined();
    await shared.release();
    expect(events).toEqual(["hold", "begin", "fill", "release"]);
  });

  it("lets go of the parent's if it could not be created", async () => {
    const { shared, engine, opening, events } = await forking();
    shared.hold();
    engine.before = (what) => {
      if (what === "create volume") throw new Error("full");
    };
    await expect(shared.open(opening)).rejects.toThrow("full");
    expect(events).toEqual(["hold", "begin", "release"]);
  });
});
