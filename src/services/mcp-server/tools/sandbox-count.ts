import { invalidUsage } from "../../../errors.js";

/** Counts the open sandboxes of all clients, and refuses more than `max`. */
export class SandboxCount {
  readonly #max: number;
  #open = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /**
   * Counts one more sandbox until the returned function is called. Error: `usage.invalid` if there are too
   * many.
   */
  take(): () => void {
    if (this.#open >= this.#max)
      throw invalidUsage(
        `${this.#max} sandboxes are open already`,
        "end another session or close another sandbox first",
      );
    this.#open += 1;
    let isTaken = true;
    return () => {
      if (isTaken) this.#open -= 1;
      isTaken = false;
    };
  }
}
