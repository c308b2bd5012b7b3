import type { Sandbox } from "../../../sandbox/index.js";
import type { Answer, Call, Calls } from "../http/response.js";
import type { SandboxSet } from "../sandboxes/sandbox-set.js";
import type { RouteName } from "../wire/routes.js";

/** How requests are answered that concern restore points. Error of all: `usage.invalid` for a sandbox without a workspace. */
export function pointCalls(
  sandboxes: SandboxSet,
): Pick<Calls, "takeRestorePoint" | "listRestorePoints" | "restore" | "undo"> {
  const use = async <T extends object>(
    { client, id, signal }: Call<RouteName>,
    run: (sandbox: Sandbox, options: { signal: AbortSignal }) => Promise<T>,
  ): Promise<Answer> => {
    const inWorkspace = sandboxes
      .get(client, id)
      .useWorkspace(signal, async ({ sandbox, signal }) => await run(sandbox, { signal }));
    return { kind: "json", value: await inWorkspace };
  };
  return {
    takeRestorePoint: async (call) =>
      await use(call, async (sandbox, options) => ({ point: await sandbox.restorePoint(options) })),
    listRestorePoints: async (call) =>
      await use(call, async (sandbox, options) => ({ points: await sandbox.restorePoints(options) })),
    restore: async (call) =>
      await use(call, async (sandbox, options) => ({
        point: await sandbox.restore(call.body.point, options),
      })),
    undo: async (call) =>
      await use(call, async (sandbox, options) => ({ undone: await sandbox.undo(options) })),
  };
}
