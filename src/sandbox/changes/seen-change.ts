import type { BaseState, TreeChange } from "../tree/tree-state.js";

/** The host's state of a path when a sandbox changed it: the base of the sandbox's version. */
export interface HostBase {
  /** Null if the host had nothing there; "unknown" if the host changed it at about the same time. */
  state: BaseState | null | "unknown";
  /** A time at which the sandbox had not yet changed the path, in nanoseconds by the engine's clock. */
  unchangedNs: bigint;
}

/** A change that a sandbox has made, with its base. */
export type SeenChange = Exclude<TreeChange, { change: "same" }> & { base: HostBase };

/** A path that a sandbox has written to, whether it differs from the host's now or not. */
export type TouchedPath = SeenChange | Extract<TreeChange, { change: "same" }>;

export interface ScanOptions {
  signal?: AbortSignal | undefined;
  /** Called with changes in the order of the bytes of their paths. A returned promise pauses the scan. */
  onChanges(changes: readonly SeenChange[]): unknown;
}

export interface ReadLimit {
  /** A larger file fails with `file.too-large`. */
  maxBytes: number;
  signal?: AbortSignal | undefined;
}
