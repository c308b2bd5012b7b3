import type { ContainerState } from "../../../sandbox/index.js";
import type { AttemptStage } from "../attempt/attempt.js";
import type { MemoryKill } from "./kernel-log.js";

/** Facts gathered after a failure. */
export interface Facts {
  error: unknown;
  stage: AttemptStage;
  /** Null if it answers; otherwise why not. */
  engineError: string | null;
  /** Null if there was none. */
  container: KnownContainer | "removed" | null;
  /** Events of the container that the engine remembers; null if it was not asked or does not say. */
  events: readonly string[] | null;
  /** Kills of processes of this container; null if the kernel's log cannot be read. */
  kills: readonly MemoryKill[] | null;
  memoryLimitBytes: number | null;
  /** Null for an engine on another machine. */
  memory: { totalBytes: number; availableBytes: number; stalledPercent: number | null } | null;
  freeDiskBytes: number | null;
}

type KnownContainer = Pick<ContainerState, "id" | "running" | "exitCode" | "oomKilled" | "error">;
