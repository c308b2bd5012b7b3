import type { Environment } from "../config/env.js";
import type { Engine } from "../docker/engine-types.js";
import type { BrigError } from "../errors.js";
import type { SandboxMode } from "../policy/modes.js";

/** What a sandbox is to be. All of it may be left out. */
export interface SandboxOptions {
  /** Directory of the host, visible at the same path. Default: the current directory. */
  workspace?: string | undefined;
  /** "bind" (default): the host's own files; "none": no workspace at all. */
  workspaceKind?: "bind" | "none" | undefined;
  /** Default "workspace-write". Not together with `policyFile`. */
  mode?: SandboxMode | undefined;
  /** A policy of your own, see sandbox-policies/README.md. */
  policyFile?: string | undefined;
  /** Another mode or policy file: its protected names are held too, all of those of workspace-write where it is read-only. */
  protectsLike?: string | undefined;
  /** Default "brig/base". Any Linux image serves. */
  image?: string | undefined;
  /** OCI runtime, for example "runsc". Default: the engine's own. */
  runtime?: string | undefined;
  /** "none" or "full"; replaces what the policy says, where the policy permits it. */
  network?: string | undefined;
  /** Further writable directories of the host. */
  addDirs?: readonly string[] | undefined;
  /** As `addDirs`, but left aside by a policy that takes none. */
  writableRoots?: readonly string[] | undefined;
  /** The container ends this long after the last host was connected. Default 60. */
  leaseSeconds?: number | undefined;
  /** No lease, and `close` leaves the container running. */
  keep?: boolean | undefined;
  /** Added to the environment of every command; never in the container's description. */
  env?: Readonly<Record<string, string>> | undefined;
  /** May be one that is still being connected to. Default: found as `brig doctor` says. */
  engine?: Engine | Promise<Engine> | undefined;
  /** Default: that of this process. */
  environment?: Environment | undefined;
  /** Aborting gives the start up and removes what there is of it. */
  signal?: AbortSignal | undefined;
  /** How many sandboxes this process may start at a time on the engine; the others wait for their turn. Default: twice the cores. */
  maxStartsAtOnce?: number | undefined;
  /** Told what the start is at, in a few words. */
  onProgress?: ((line: string) => void) | undefined;
  /** Output of a process that outlived its call; `call` counts the sandbox's requests from 1. */
  onLateOutput?: ((data: Buffer, call: number) => void) | undefined;
  /**
   * What went wrong where no call could say so: while a sandbox that could not start was taken away, that ended by itself or that
   * `await using` closed. Default: a warning of the process.
   */
  onWarning?: ((warning: BrigError) => void) | undefined;
}
