import { BrigError } from "../errors.js";

/** Reports a problem that no call can report. */
export type Warn = (problem: unknown) => void;

/**
 * Calls `onWarning`, or emits a process warning without it. An error thrown by `onWarning` becomes a process
 * warning too.
 */
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
