import type { Identity } from "../plan/plan.js";
import type { CommandContext } from "../process/command.js";

/**
 * Paths in the containers of a tree. `MERGED_PATH`: the tree as commands see it. `UPPER_PATH`: what was
 * written to it. `BASE_PATH`: the host's workspace.
 */
export const MERGED_PATH = "/merged";
export const UPPER_PATH = "/upper";
export const BASE_PATH = "/base";
/** The path at which the keeper of a new fork has the tree that was forked. */
export const FROM_PATH = "/from";

/** A path below one of these. An empty path is the directory itself. */
export function below(directory: string, path: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(path.length === 0 ? directory : `${directory}/`), path]);
}

/** A copy-on-write workspace, as `diff`, `apply` and `fork` use it on the host. */
export interface WorkspaceTree {
  /** The names of its volumes and containers contain this id. */
  readonly id: string;
  /** The workspace's path on the host, which is also its path inside. */
  readonly workspace: string;
  /**
   * The time at which the top directory of the tree got the owner and the mode of the workspace, in nanoseconds since
   * 1970. Everything that commands write is newer.
   */
  readonly startedAt: bigint;
  /** The identity of its top directory, wherever it is mounted. No other tree of the engine has it at the same time. */
  readonly identity: Identity;
  /**
   * Paths below the workspace, relative to it, where something else is mounted in a sandbox: protected names,
   * whether they exist or not, and other writable directories. The tree may have an empty directory there.
   */
  readonly leftOut: readonly string[];
  /**
   * Returns the context for working in the keeper, and starts another keeper if it has ended. The keeper is a
   * container that runs as root, with the capabilities to read and write every file. It has the tree at
   * `/merged`, the upper layer, read-only, at `/upper`, and the host's workspace, read-only, at `/base`.
   * Errors: those of a start.
   */
  keeper(): Promise<CommandContext>;
  /**
   * Starts a container that may write to the host's workspace, as its owner, at `/base`. Protected names that
   * exist are read-only there. Errors: those of a start.
   */
  openApplier(options?: { signal?: AbortSignal | undefined }): Promise<TreeContainer>;
}

/** A running container that brig itself works in. No command of an agent runs there. */
export interface TreeContainer {
  readonly context: CommandContext;
  /** Ends it. Error: `engine.failed`, if the engine does not confirm that it is gone. */
  close(): Promise<void>;
}
