import { BrigError } from "../errors.js";

/** Reports a problem that no call can report. */
export type Warn = (problem: unknown) => void;

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
