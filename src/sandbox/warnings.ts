import { BrigError } from "../errors.js";
import type { SandboxPlan } from "./plan/plan.js";

/** Reports a problem that no call can report. */
export type Warn = (problem: unknown) => void;

/** Warns of what does not work in a sandbox, unless another one with the same access to the workspace was told of before. */
export function tellNotices(
  { notices, workspace, mounts }: Pick<SandboxPlan, "notices" | "workspace" | "mounts">,
  { told = new Set(), warn }: { told?: Set<string> | undefined; warn: Warn },
): void {
  const key = `${mounts.find(({ kind }) => kind === "workspace")?.access} ${workspace}`;
  if (notices.length === 0 || told.has(key)) return;
  told.add(key);
  for (const notice of notices) warn(notice);
}

/** Calls `onWarning`. Without it, or if it throws, emits a process warning. */
export function warner({ onWarning }: { onWarning?: ((warning: BrigError) => void) | undefined }): Warn {
  return (problem) => {
    const warning =
      problem instanceof BrigError
        ? problem
        : new BrigError(`the sandbox did not end properly: ${String(problem)}`, {
            code: "engine.failed",
            cause: problem,
          });
    try {
      if (onWarning) onWarning(warning);
      else process.emitWarning(warning);
    } catch (error) {
      process.emitWarning(error instanceof Error ? error : String(error));
    }
  };
}
