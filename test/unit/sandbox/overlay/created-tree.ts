import { mkdir, mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import {
  applierPlan,
  keeperPlan,
  type OverlaidPlan,
  OverlayTree,
} from "../../../../src/sandbox/overlay/overlay-tree.js";
import { planFor } from "../plan/plan-fixture.js";
import type { PlayedContainer } from "../played-engine.js";
import { TreeEngine, treeReport } from "./tree-engine.js";

export const id = "7a0c1d7e-0000-4000-8000-000000000000";
const labels = { "brig.session": id };
const top = "77 5 40755 1000 1001 4242";

async function planned(): Promise<OverlaidPlan> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "brig-tree-")));
  onTestFinished(async () => await rm(folder, { recursive: true }));
  await mkdir(join(folder, "repo"));
  const plan = (await planFor(join(folder, "repo"), { overlay: { id } })) as OverlaidPlan;
  return { ...plan, limits: { ...plan.limits } };
}

interface Given {
  /** The state of the tree's top directory. */
  merged?: string;
  origin?: Parameters<typeof OverlayTree.create>[0]["origin"];
  from?: string;
  change?: (engine: TreeEngine) => void;
}

/** Creates a tree on an engine that the test plays. */
export async function create({ merged = top, origin, from, change = () => undefined }: Given = {}) {
  const plan = await planned();
  const engine = new TreeEngine();
  const warnings: unknown[] = [];
  engine.reported = ({ name }: PlayedContainer) => {
    if (name.includes("applier")) {
      const user = {
        uid: process.getuid?.() === 0 ? 1000 : (process.getuid?.() ?? 0),
        gid: process.getuid?.() === 0 ? 1001 : (process.getgid?.() ?? 0),
      };
      return treeReport(applierPlan(plan, { protectedMounts: [], labels, user }), {});
    }
    const isFirst = engine.containers.filter((one) => one.name.includes("keeper")).length === 1;
    const keeper = keeperPlan(plan, { isFirst, labels, from: isFirst ? origin?.tree.id : undefined });
    const identity = plan.overlay.identity;
    const stats = { "/merged": merged, "/base": `${identity.dev} ${identity.ino} 40755 1000 1001 1` };
    return treeReport(keeper, { ...stats, ...(from && { "/from": from }) });
  };
  change(engine);
  const tree = await OverlayTree.create({
    ...{
      plan,
      labels,
      engine: engine.asEngine,
      toolbox: { volume: "brig-toolbox", directory: null },
      imageId: engine.imageId,
    },
    ...{ origin, warn: (warning: unknown) => void warnings.push(warning) },
  });
  return { tree, engine, plan, warnings };
}

export const volume = (kind: string) => `brig-${id}-${kind}`;
export const nameOf = (container: PlayedContainer | undefined) =>
  container?.name.replace(/-[0-9a-f]{8}$/, "-N");
