import type { BrigError } from "../errors.js";
import type { Snapshot } from "./changes/workspace-change.js";
import type { DockerClient } from "./docker/dockerode.js";
import type { EngineConnection } from "./docker/engine-types.js";
import type { EgressAttempt } from "./egress/attempt.js";
import type { EgressSettings } from "./policy/egress-schema.js";
import type { SandboxMode } from "./policy/modes.js";
import type { SandboxLimits } from "./policy/policy.js";

/** The way in which a sandbox sees a workspace. */
export type WorkspaceKind = "bind" | "overlay" | "none";

export const WORKSPACE_KINDS: readonly WorkspaceKind[] = ["bind", "overlay", "none"];

/** The access of commands to the repository in the workspace. */
export type GitAccess = "protected" | "branch";

export const GIT_ACCESSES: readonly GitAccess[] = ["protected", "branch"];

/** The options of `Sandbox.create`. All of them are optional. */
export interface SandboxOptions {
  /** A directory of the host, visible at the same path inside. Default: the current directory. */
  workspace?: string | undefined;
  /**
   * "bind" (default): the host's own files; "overlay": copy-on-write, so that commands see the host's files but
   * change only the sandbox's; "none": no workspace at all.
   */
  workspaceKind?: WorkspaceKind | undefined;
  /**
   * "protected" (default): as the policy says, most often read-only; "branch": commands write to a copy of the
   * workspace's `.git`, and `close` brings the new commits to the host as the branch `brig/ID`.
   */
  git?: GitAccess | undefined;
  /**
   * A snapshot, or its id: the workspace is copy-on-write, and in the state that was stored. `workspace`, if it is
   * given, must be the snapshot's.
   */
  from?: Snapshot | string | undefined;
  /** Only with `from`: the number of one of its restore points, 0 for the state before the first. Default: the last state. */
  at?: number | undefined;
  /** Default "workspace-write". Not together with `policyFile`. */
  mode?: SandboxMode | undefined;
  /** Your own policy, see sandbox-policies/README.md. */
  policyFile?: string | undefined;
  /**
   * A mode or policy file whose protected names are protected too; for a read-only one, those of
   * workspace-write.
   */
  protectsLike?: string | undefined;
  /**
   * Protected paths that commands may change where they cannot be kept from it, such as an `.agents` that is a link, or a
   * repository that leads to a directory above it. Relative to the workspace. Without it such a sandbox does not start.
   */
  unprotected?: readonly string[] | undefined;
  /**
   * The user that commands run as, `UID:GID`. Default: the user who runs this process. Error: `usage.invalid` with a policy that names
   * a user itself, as danger-full-access does.
   */
  user?: string | undefined;
  /** Default "brig/base". Any Linux image serves. */
  image?: string | undefined;
  /**
   * Instead of `image`: a Dockerfile, or a directory that has one, from which the image is built with everything beside it. An
   * engine that has an image of the same content builds nothing. What a Dockerfile runs is not in a sandbox, see docs/images.md.
   */
  dockerfile?: string | undefined;
  /**
   * Graphics processors of the engine's machine: "all", or how many. Error: `usage.invalid` if the engine has none to give.
   * Default: none.
   */
  gpus?: string | undefined;
  /** OCI runtime, for example "runsc". Default: the engine's own. */
  runtime?: string | undefined;
  /**
   * Memory, cores and processes in place of the policy's. Directories in memory shrink with a smaller `memoryMb`, since
   * what is in them counts as memory.
   */
  limits?: SandboxLimits | undefined;
  /**
   * "none", "full", "allowlist:HOST,…" or "learn", see docs/network.md: replaces the network setting of the policy, if the
   * policy permits it.
   */
  network?: string | undefined;
  /**
   * With an allow-list, the proxy through which this machine reaches the internet: `http://user:password@proxy:3128`,
   * or "environment" for that of HTTPS_PROXY. Nothing of it is visible inside. Default: BRIG_EGRESS_PROXY, else none.
   */
  egressProxy?: string | undefined;
  /**
   * Rules for requests to the hosts of an allow-list, and secrets that are put into requests outside of the sandbox,
   * see docs/request-rules.md. Commands find a placeholder for each secret in their environment. Error: `usage.invalid`
   * with the network full.
   */
  egress?: EgressSettings | undefined;
  /** More writable directories of the host. */
  addDirs?: readonly string[] | undefined;
  /** Like `addDirs`, but a policy that permits none ignores them instead of refusing them. */
  writableRoots?: readonly string[] | undefined;
  /** The container ends this long after the last host disconnected. Default 60. */
  leaseSeconds?: number | undefined;
  /** No lease, and `close` leaves the container running. */
  keep?: boolean | undefined;
  /** Added to the environment of every command. The engine, and so `docker inspect`, never sees it. */
  env?: Readonly<Record<string, string>> | undefined;
  /** The `engine` of another sandbox, to share its connection. Default: the engine that `brig doctor` reports. */
  engine?: EngineConnection | Promise<EngineConnection> | undefined;
  /**
   * Your own client of the engine, a `Docker` of the package dockerode: everything that brig asks of the engine goes through
   * it. Not together with `engine`.
   */
  docker?: DockerClient | undefined;
  /** Aborting cancels the start and removes what it has created. */
  signal?: AbortSignal | undefined;
  /**
   * The number of sandboxes that this process may start on the engine at the same time. Default: twice the number of
   * cores.
   */
  maxStartsAtOnce?: number | undefined;
  /** Called with a few words at each stage of the start. */
  onProgress?: ((line: string) => void) | undefined;
  /** Receives the output of a process that outlived its call. `call` counts the sandbox's requests from 1. */
  onLateOutput?: ((data: Buffer, call: number) => void) | undefined;
  /** With an allow-list, receives each attempt to reach something, after it has ended. */
  onEgress?: ((attempt: EgressAttempt) => void) | undefined;
  /**
   * Receives errors that no call can report: from removing a sandbox that could not start, that ended by
   * itself or that `await using` closed. Default: a warning of the process.
   */
  onWarning?: ((warning: BrigError) => void) | undefined;
}

/** Options of `Sandbox.connect`. */
export interface ConnectOptions {
  /** Aborting gives up. */
  signal?: AbortSignal | undefined;
}

/** The options about the start of a sandbox and about who hears of it, not about the sandbox itself. */
export type StartOption =
  | "signal"
  | "maxStartsAtOnce"
  | "onProgress"
  | "onLateOutput"
  | "onEgress"
  | "egressProxy"
  | "onWarning";
