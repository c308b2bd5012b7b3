import { isBrigError } from "../../errors.js";
import { TOOLBOX_PATH } from "../plan/create-body.js";
import type { Kernel } from "../plan/plan.js";

/** Another kernel runs in the container than the one that the plan was made for. */
export class WrongKernel extends Error {}

/**
 * Opens a container for the expected kernel, and if that was wrong, again for the other one. The name of a
 * runtime is not certain: an administrator may call gVisor anything.
 */
export async function onRightKernel<T>(expected: Kernel, open: (kernel: Kernel) => Promise<T>): Promise<T> {
  try {
    return await open(expected);
  } catch (error) {
    if (!(error instanceof WrongKernel)) throw error;
  }
  try {
    return await open(expected === "gvisor" ? "shared" : "gvisor");
  } catch (error) {
    throw error instanceof WrongKernel ? error.cause : error;
  }
}

/** GVisor reads a program before it runs it. This is its error when it may not read the runner. */
export function cannotLoadRunner(error: unknown): boolean {
  return (
    isBrigError(error, "engine.failed") &&
    error.message.includes(`failed to load ${TOOLBOX_PATH}/runner: permission denied`)
  );
}
