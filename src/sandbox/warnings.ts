import { BrigError } from "../errors.js";

/** Reports a problem that no call can report. */
export type Warn = (problem: unknown) => void;

/** Warns of each notice that has not been told before. */
export function tellNotices(
  notices: readonly BrigError[],
  { told = new Set(), warn }: { told?: Set<string> | undefined; warn: Warn },
): void {
  for (const notice of notices) {
    if (told.has(notice.message)) continue;
    told.add(notice.message);
    warn(notice);
  }
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
