import { BrigError } from "../errors.js";

/** Takes what went wrong where nobody waits for an answer. */
export type Warn = (problem: unknown) => void;

/** Tells whoever listens, else the process; a listener's own error goes to the process too. */
export function warner({ onWarning }: { onWarning?: ((warning: BrigError) => void) | undefined }): Warn {
  return (problem) => {
    const warning =
      problem instanceof BrigError
        ? problem
        : new BrigError(`the sandbox did not end well: ${String(problem)}`, {
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
