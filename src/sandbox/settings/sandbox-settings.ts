import type { Environment } from "../../lib/env.js";
import type { SessionBranch } from "../branch/session-branch.js";
import type { InspectionOptions } from "../egress/inspection.js";
import type { SharedTree } from "../overlay/shared-tree.js";
import type { NetworkScope } from "../policy/network.js";
import type { LoadedPolicy, SandboxLimits } from "../policy/policy.js";
import type { VolumeMount } from "../volumes/cache-volume.js";
import type { HostMount } from "../volumes/host-mount.js";

/** A command that runs in a sandbox before anything else. */
export interface SandboxSetup {
  argv: readonly string[];
  /** "full" only where the policy's network is. */
  network: NetworkScope;
  timeoutMs: number;
}

/** Everything about a sandbox that is decided without its engine. Nothing is left to a default. */
export interface SandboxSettings {
  policy: LoadedPolicy;
  /** Whoever opens the sandbox has to run it. Its network needs an allow-list, which may then be empty. Default: none. */
  setup?: SandboxSetup | undefined;
  /** Absolute path on the host; null for a sandbox without a workspace. */
  workspace: string | null;
  /**
   * Where commands see a copy-on-write workspace that is an empty directory of brig's own: nothing in it is protected, since
   * nothing is the host's. Default: the workspace is at its own path.
   */
  workspacePath?: string | undefined;
  /**
   * The tree of a copy-on-write workspace, to which all sandboxes with these settings write. Default: they
   * write to the host's files.
   */
  overlay?: SharedTree | undefined;
  /**
   * Given if commands may write to a copy of the repository. If the workspace is the host's own files,
   * `overlay` is the copy of `.git`.
   */
  branch?: SessionBranch | undefined;
  /** Paths, relative to the workspace, that need not be protected where that is not possible. Default: none. */
  unprotected?: readonly string[] | undefined;
  /** The user that commands were asked to run as. Default: nobody in particular. */
  user?: string | undefined;
  /** The workspaces whose notices were given already. All sandboxes with these settings share it. Default: none. */
  toldNotices?: Set<string> | undefined;
  /** Reference or id. */
  image: string;
  /** OCI runtime; undefined for the engine's default. */
  runtime?: string | undefined;
  /** How many graphics processors commands may use; -1 for all. Default: none. */
  gpus?: number | undefined;
  /** Limits in place of the policy's, also if another policy takes its place. Default: the policy's. */
  limits?: SandboxLimits | undefined;
  /** `--add-dir`: refused where the policy takes no further writable directories. */
  addDirs: readonly string[];
  /** `writable_roots` of the configuration: left aside where the policy takes none. */
  writableRoots: readonly string[];
  /** Variables for commands, never for the container. */
  env: Readonly<Record<string, string>>;
  /** Rules for requests to the hosts of an allow-list, and secrets for them. Default: none. */
  inspection?: InspectionOptions | null | undefined;
  /** Default: none. */
  volumes?: readonly VolumeMount[] | undefined;
  /** Mounts that brig itself makes read-only, besides the user's directories. Default: none. */
  hostMounts?: readonly HostMount[] | undefined;
  /** The host's directory that is the HOME of commands. Default: it is in memory, as the policy says. */
  privateHome?: string | undefined;
  leaseSeconds: number;
  /** The container outlives its host process. */
  keep: boolean;
  /**
   * The container stays when its processes have ended, until `close` or a sweep removes it, so that files can be
   * copied out of it. Default: the engine removes it.
   */
  outlivesProcesses?: boolean | undefined;
  /** The directory in which commands start. Default: the workspace, or `/` without one. */
  workingDirectory?: string | undefined;
  environment: Environment;
}
