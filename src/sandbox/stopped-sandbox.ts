import { BrigError } from "../errors.js";
import type { Engine } from "./docker/engine-types.js";
import { endsByItself, withRetries } from "./removal.js";
import { openedSandboxOf, type Sandbox, sandboxFrom } from "./sandbox.js";

/** A sandbox in which nothing runs any more. Its files can be copied, and it can be started again. */
export interface StoppedSandbox {
  readonly containerId: string;
  readonly engine: Engine;
  /** The $BRIG_HOME in which the sandbox is recorded, and everything else that is made on the engine for its files. */
  readonly brigHome: string;
  /**
   * Starts the container again, with a new runner and the same policy, which is proved again. Closing the new
   * sandbox removes the container; closing the old one afterwards does no harm.
   */
  restart(): Promise<Sandbox>;
}

/** The container of a sandbox whose files are read, whether or not something runs in it. */
export type StoppedSandboxFiles = Omit<StoppedSandbox, "restart">;

/**
 * Ends everything in a sandbox that outlives its processes, and resolves when the engine says that its container
 * does not run. With its first process, the runner, the kernel kills all others; only if the runner does not end soon
 * the engine has to kill it, which costs a program of its own. Errors: those of the engine, after which processes may
 * still run.
 */
export async function stopSandbox(sandbox: Sandbox): Promise<StoppedSandbox> {
  const opened = openedSandboxOf(sandbox);
  const { engine, containerId, link, plan } = opened;
  if (!plan.outlivesProcesses) throw new TypeError("the sandbox's container does not outlive its processes");
  const isEnding = link.end(
    new BrigError("the sandbox was stopped", {
      code: "sandbox.gone",
      reason: "closed",
      hint: "restart it, or create another one",
    }),
  );
  const wait = (signal: AbortSignal) => engine.waitContainer(containerId, { signal });
  const hasEnded = isEnding && (await endsByItself(wait));
  await withRetries(async (signal, { isFirst }) => {
    if (!hasEnded || !isFirst) {
      await engine.killContainer(containerId);
      await wait(signal);
    }
    if ((await engine.inspectContainer(containerId, { signal }))?.running === true)
      throw new BrigError("the container still runs after it was killed", { code: "engine.failed" });
  });
  const { brigHome } = opened.settings.environment;
  return { containerId, engine, brigHome, restart: async () => sandboxFrom(await opened.restart()) };
}
