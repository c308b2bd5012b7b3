import type { AskAboutHost, EgressAttempt, RestorePointOptions } from "../sandbox/index.js";
import type { ChangeConflict, FileChange, ToolSandbox } from "../tools/index.js";
import type { SessionRestorePoint, UndoneChanges } from "./session/restore-point.js";

/** The parts of a sandbox that the agent needs. */
export interface AgentSandbox extends ToolSandbox {
  readonly id: string;
  readonly image?: string;
  /** Proof of what the kernel enforces, read back from it. The session file records it unchanged. */
  readonly proof?: unknown;
  /**
   * Calls the listener for each attempt of a program to reach something, and asks about hosts that are not allowed.
   * Absent where no attempts are seen.
   */
  watchEgress?(
    listener: (attempt: EgressAttempt) => void,
    options?: {
      ask?: AskAboutHost | undefined;
      onCanarySent?: ((error: Promise<Error>) => void) | undefined;
    },
  ): void;
  /** Replaces the allow-list. Absent where there is none. */
  setNetwork?(network: string): void;
  /** May resolve to a receipt of what the session left on the host, which the session file records. */
  close(): Promise<unknown>;
  /**
   * Opens another sandbox, on a copy of the workspace as it is now. The caller closes it. Absent if this
   * sandbox cannot be forked.
   */
  fork?(options?: { signal?: AbortSignal | undefined }): Promise<ForkedSandbox>;
  /** Name under which the states of a copy-on-write workspace are kept. Null or absent for any other workspace. */
  readonly snapshotId?: string | null;
  /**
   * Keeps the state that the workspace has now. Null if nothing has changed since the last time. Called only
   * with a `snapshotId`.
   */
  restorePoint?(options?: { signal?: AbortSignal | undefined }): Promise<SessionRestorePoint | null>;
  /** Takes back what changed at the last restore point, while processes go on. Null if there is nothing to undo. */
  undo?(options?: RestorePointOptions): Promise<UndoneChanges | null>;
}

/** A sandbox on a copy of another one's workspace. */
export type ForkedSandbox = AgentSandbox & ForkedTree;

/** A sandbox that works on a copy of another one's workspace. Paths are relative to the workspace. */
interface ForkedTree {
  /** Finds the changes made since it was forked. */
  changesSinceFork(options: ForkedPathOptions): Promise<ForkedChanges>;
  /**
   * Makes the same changes in the parent's workspace: all of them, or none if one is in conflict with what
   * has changed there since.
   */
  applyTo(parent: AgentSandbox, options: ForkedPathOptions): Promise<AppliedFork>;
}

/** The options of a call about the changes of a fork. */
interface ForkedPathOptions {
  /** Default: all. */
  paths?: readonly string[] | undefined;
  signal?: AbortSignal | undefined;
}

/** Changes in a forked workspace. */
interface ForkedChanges {
  /** Sorted by path. */
  files: readonly FileChange[];
  /** A unified diff, without binary files; it may be cut. */
  text: string;
}

/** The result of applying changes to the parent's workspace. If there are conflicts, nothing was written. */
type AppliedFork =
  | { kind: "applied"; files: readonly FileChange[] }
  | { kind: "conflicts"; conflicts: readonly ChangeConflict[] };

/** A sandbox, one that is starting, or a function that opens one, which the agent then closes. */
export type SandboxSource = AgentSandbox | Promise<AgentSandbox> | (() => Promise<AgentSandbox>);
