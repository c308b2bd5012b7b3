import type { CallCause } from "./call-cause.js";

/** How a command ended. */
export interface CommandEnd {
  /** 128 + n when signal n ended it; 124 on a timeout; 127 or 126 if the program could not be started. */
  exitCode: number;
  /** The signal that ended it, such as "SIGKILL", or null. */
  signal: NodeJS.Signals | null;
  timedOut: boolean;
  /** The kernel killed a process of this command because memory ran out; `causes` says whose. */
  outOfMemory: boolean;
  /** Processes outlived the main process, and were ended as `endsTree` asks. */
  treeEnded: boolean;
  /** Known reasons for the failure. Empty if it succeeded or no reason is known. */
  causes: readonly CallCause[];
  durationMs: number;
  usage: ResourceUsage;
  /** Null if the program was started. */
  startFailure: StartFailure | null;
}

/** CPU time and peak memory of a command and the children that it waited for. */
export interface ResourceUsage {
  userMs: number;
  systemMs: number;
  maxRssBytes: number;
}

/** Why a program could not be started. */
export interface StartFailure {
  /**
   * The step that failed: creating a process, its streams, entering its directory, executing it, or the request
   * itself. "none" means that it was killed before it could start.
   */
  stage: "none" | "fork" | "streams" | "cwd" | "exec" | "request";
  /** The Linux name of the reason, such as "ENOENT"; undefined if no system call was made. */
  errno: string | undefined;
  /** A text for people and models; the wording may change. It may contain the program's name, which can be any text. */
  message: string;
}
