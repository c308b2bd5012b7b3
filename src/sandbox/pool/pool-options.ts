import type { Sandbox } from "../sandbox.js";
import type { SandboxOptions } from "../sandbox-options.js";

/** The options of `createPool`: those of sandboxes without a workspace, and the size. */
export interface PoolOptions
  extends Pick<
    SandboxOptions,
    | "mode"
    | "policyFile"
    | "image"
    | "runtime"
    | "limits"
    | "network"
    | "leaseSeconds"
    | "env"
    | "engine"
    | "maxStartsAtOnce"
    | "onWarning"
  > {
  /** The number of sandboxes that are kept ready, 1 to 1000. Default 4. */
  size?: number | undefined;
  /** Only "none": a workspace could change between the start of a sandbox and its use. */
  workspaceKind?: "none" | undefined;
}

/** Sandboxes that are started before they are needed. Close it, or use `await using`. */
export interface SandboxPool extends AsyncDisposable {
  /** The number of sandboxes that could be handed over now. */
  readonly readyCount: number;
  /**
   * Hands over a sandbox that nobody has used, which the caller closes, and starts another one in its place. If
   * none is ready, waits for one, in the order of the calls. Errors: those of `Sandbox.create`, or the signal's
   * reason; `usage.invalid` once the pool is closed.
   */
  acquire(options?: AcquireOptions): Promise<Sandbox>;
  /** Resolves when `size` sandboxes are ready. Errors: as `acquire`. */
  filled(options?: AcquireOptions): Promise<void>;
  /** Ends the waiting calls, and closes what was not handed over. May be called again. */
  close(): Promise<void>;
}

/** Options of a wait for the pool. */
export interface AcquireOptions {
  /** Aborting ends the wait. The sandbox that was on its way stays in the pool. */
  signal?: AbortSignal | undefined;
}
