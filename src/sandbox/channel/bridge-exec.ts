import type { Engine, ExecStream } from "../../docker/engine-types.js";
import { runnerPath } from "../plan/create-body.js";
import type { SandboxPlan } from "../plan/plan.js";

/** Below 65536, which is all that the user namespace of a rootless engine has. */
const BRIDGE_IDS = [65_521, 65_522];

/**
 * Starts `runner connect` under a user that no command of the sandbox has: one of the same user could kill it again and again
 * before it has handed its streams to PID 1.
 */
export async function openBridge(engine: Engine, id: string, plan: SandboxPlan): Promise<ExecStream> {
  const own = BRIDGE_IDS.find((one) => one !== plan.user.uid && one !== plan.user.gid);
  return await engine.openExec(id, [runnerPath(plan), "connect"], { user: `${own}:${own}` });
}
