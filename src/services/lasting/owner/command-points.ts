import { isBrigError } from "../../../errors.js";
import type { OnCopied, Sandbox } from "../../../sandbox/index.js";

/** Takes a restore point after each command in a copy-on-write workspace, so that `brig undo` can take back what the last one has changed. */
export class CommandPoints {
  readonly #sandbox: Sandbox;
  readonly #onWarning: (error: unknown) => void;
  /** Once one could not be taken, there are no more. */
  #hasFailed = false;

  constructor(sandbox: Sandbox, onWarning: (error: unknown) => void) {
    this.#sandbox = sandbox;
    this.#onWarning = onWarning;
  }

  /** Resolves when the point is taken. Never rejects: a command has ended as it has, whether or not it can be undone. */
  async afterCommand(onCopied?: OnCopied): Promise<void> {
    if (this.#hasFailed || this.#sandbox.snapshotId === null) return;
    try {
      await this.#sandbox.restorePoint({ onCopied });
    } catch (error) {
      this.#hasFailed = true;
      if (!isBrigError(error, "sandbox.gone")) this.#onWarning(error);
    }
  }
}
