import { BrigError, isBrigError, messageWithHint } from "../../errors.js";
import { AfterAbort } from "../../lib/time/after-abort.js";
import type { RestorePointOptions } from "../../sandbox/index.js";
import type { AgentSandbox } from "../agent-sandbox.js";
import type { UndoneChanges } from "../session/restore-point.js";
import { restorePointRecord, undoRecord } from "../session/write/session-records.js";
import type { Transcript } from "../turn/transcript.js";
import { undoneMessage } from "./workspace-messages.js";

/** Time that keeping a state may take after the user has interrupted the call. */
const AFTER_ABORT_MS = 5000;

/** Keeps the state of a copy-on-write workspace after each call that may have changed it. */
export class RestorePoints {
  readonly #transcript: Transcript;
  #settled: Promise<void> = Promise.resolve();
  /** The sandbox for which keeping a state has failed; no more are kept for it. */
  #failed: AgentSandbox | null = null;

  constructor(transcript: Transcript) {
    this.#transcript = transcript;
  }

  /** Resolves when every restore point is recorded. */
  get settled(): Promise<void> {
    return this.#settled;
  }

  /**
   * Resolves when the state is recorded. Never rejects: if a state cannot be kept, this emits a warning. If
   * that takes long after the signal is aborted, what has changed is part of the next state.
   */
  async take(
    callId: string,
    options: { sandbox: Promise<AgentSandbox>; signal: AbortSignal },
  ): Promise<void> {
    this.#settled = this.#settled.then(() => this.#take(callId, options));
    await this.#settled;
  }

  /** Undoes the last restore point, and tells the model so. Errors: `workspace.invalid`, those of the sandbox. */
  async undo(sandbox: AgentSandbox, options: RestorePointOptions): Promise<UndoneChanges | null> {
    if (!sandbox.snapshotId || sandbox.undo === undefined)
      throw new BrigError("only changes of a copy-on-write workspace can be undone", {
        code: "workspace.invalid",
        hint: "start the session with --workspace overlay",
      });
    const undone = await sandbox.undo(options);
    if (undone === null) return null;
    this.#transcript.keep(undoRecord(undone));
    this.#transcript.recordItem(undoneMessage(undone.point));
    return undone;
  }

  async #take(
    callId: string,
    { sandbox: ready, signal }: { sandbox: Promise<AgentSandbox>; signal: AbortSignal },
  ): Promise<void> {
    const sandbox = await ready.catch(() => null);
    if (!sandbox?.snapshotId || sandbox === this.#failed) return;
    // An interrupted call may have changed files, so its state is kept as well; and the model's last words may be
    // read, and the session ended, before the state of the call before them is kept.
    using end = new AfterAbort(signal, AFTER_ABORT_MS);
    try {
      const point = await sandbox.restorePoint?.({ signal: end.signal });
      if (!point) return;
      const { snapshot, number, count, changes } = point;
      this.#transcript.keep(restorePointRecord(callId, point));
      this.#transcript.emit({
        kind: "restore-point-created",
        callId,
        snapshot,
        point: number,
        count,
        changes,
      });
    } catch (error) {
      if (end.signal.aborted) return;
      this.#failed = sandbox;
      // No warning for a sandbox that is gone, because the turn reports that itself.
      if (!isBrigError(error, "sandbox.gone")) this.#warn(error);
    }
  }

  #warn(error: unknown): void {
    const reason = isBrigError(error) ? messageWithHint(error) : String(error);
    this.#transcript.emit({
      kind: "warning",
      message: `calls can no longer be undone, since the state of the workspace could not be kept: ${reason}`,
    });
  }
}
