import { isBrigError } from "../../errors.js";
import { TOOLBOX_PATH } from "../plan/create-body.js";
import type { Kernel } from "../plan/plan.js";

/** The container was described for the other kernel than the one that answers in it. */
export class OtherKernel extends Error {}

/**
 * Opens a container for the kernel it is expected to have, and once more for the other one where that was
 * wrong. How a runtime is called tells too little: an administrator may call gVisor what he likes.
 */
export async function onRightKernel<T>(expected: Kernel, open: (kernel: Kernel) => Promise<T>): Promise<T> {
  try {
    return await open(expected);
  } catch (error) {
    if (!(error instanceof OtherKernel)) throw error;
  }
  try {
    return await open(expected === "gvisor" ? "shared" : "gvisor");
  } catch (error) {
    throw error instanceof OtherKernel ? error.cause : error;
  }
}

/** GVisor reads a program before it runs it, and says by this that it may not read the runner. */
export function cannotLoadRunner(error: unknown): boolean {
  return (
    isBrigError(error, "engine.failed") &&
    error.message.includes(`failed to load ${TOOLBOX_PATH}/runner: permission denied`)
  );
}
