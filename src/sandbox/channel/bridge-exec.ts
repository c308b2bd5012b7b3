import type { Engine, ExecStream } from "../docker/engine-types.js";
import { filesProgramPath } from "../plan/create-body.js";
import type { SandboxPlan } from "../plan/plan.js";

/** Ids for the user and the group, below 65536: the user namespace of a rootless engine has no higher ones. */
const BRIDGE_IDS = [65_521, 65_522];

/**
 * Starts `runner-files connect` as a user of its own: a command of the same user could kill it before it hands its
 * streams to PID 1.
 */
export async function openBridge(engine: Engine, id: string, plan: SandboxPlan): Promise<ExecStream> {
  const bridge = BRIDGE_IDS.find((one) => one !== plan.user.uid && one !== plan.user.gid);
  return await engine.openExec(id, [filesProgramPath(plan), "connect"], { user: `${bridge}:${bridge}` });
}
