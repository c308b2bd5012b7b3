import type { Engine, ExecStream } from "../../docker/engine-types.js";
import { runnerPath } from "../plan/create-body.js";
import type { SandboxPlan } from "../plan/plan.js";

/** Below 65536, since the user namespace of a rootless engine has no higher ids. */
const BRIDGE_IDS = [65_521, 65_522];

/**
 * Starts `runner connect` as a user of its own: a command of the same user could kill it before it hands its
 * streams to PID 1.
 */
export async function openBridge(engine: Engine, id: string, plan: SandboxPlan): Promise<ExecStream> {
  const bridge = BRIDGE_IDS.find((one) => one !== plan.user.uid && one !== plan.user.gid);
  return await engine.openExec(id, [runnerPath(plan), "connect"], { user: `${bridge}:${bridge}` });
}
