import type { BrigError } from "../../errors.js";
import type { Policy } from "../policy/policy.js";
import type { VolumeMount } from "../volumes/cache-volume.js";

/** A sandbox completely described: sizes in bytes, absolute paths, no defaults left to resolve. */
export interface SandboxPlan {
  sessionId: string;
  /** The name of the mode, or the policy file. */
  policyName: string;
  image: string;
  /** Null means the engine's default. */
  runtime: string | null;
  /** How many graphics processors; -1 for all. Default: none. */
  gpus?: number | undefined;
  /** The kernel that the container is expected to run on; the kernel report says which one it does run on. */
  kernel: Kernel;
  workspace: string | null;
  /** The directory in which commands start: the workspace, or `/` without one, unless the settings name another. */
  workingDirectory: string;
  /** The HOME of commands. */
  home: string;
  rootfs: "ro" | "rw";
  /** Mounts of the host's directories, each at its own path unless it has a `source`; parents before children. */
  mounts: PlannedMount[];
  /** The layers of the copy-on-write workspace that is among the mounts; null if none is. */
  overlay: OverlayLayers | null;
  /** Writable volumes of the engine. */
  volumes: readonly VolumeMount[];
  tmpfs: PlannedTmpfs[];
  /** Read-only tmpfs mounts at directories between a tmpfs and a mount below it; see `findTmpfsParents`. */
  parents: string[];
  /** Problems for the user: each one says what does not work in this sandbox. */
  notices: readonly BrigError[];
  /** Absent protected names that have to be created on the host just before the container. */
  placeholders: string[];
  /** Absent protected names that must be files if they are anything. In a copy-on-write workspace nothing is there. */
  emptyFiles: string[];
  /** Absent protected names of a copy-on-write workspace: an empty read-only tmpfs is mounted at each. */
  absentNames: string[];
  /** Sockets and FIFOs of the host that commands would otherwise reach. /dev/null is mounted over each. */
  covered: readonly CoveredFile[];
  /**
   * Directories of the host whose names make something obeyed that is in them, as they were before the start. A
   * receipt tells by them what was renamed. Empty where no directory is searched.
   */
  knownDirectories: readonly KnownDirectory[];
  user: { uid: number; gid: number };
  network: "none" | "bridge";
  /** The hosts that programs reach through the runner's stream, without any network; null if there is no such list. */
  egress: { hosts: readonly string[] } | null;
  /** "tree": only those that are needed to read and write every file of a copy-on-write tree. */
  capabilities: Policy["capabilities"] | "tree";
  noNewPrivileges: boolean;
  seccomp: Policy["seccomp"];
  limits: PlannedLimits;
  /** 0 means no lease. */
  leaseSeconds: number;
  /** The container stays when its processes have ended, until it is removed, so that files can be copied out of it. */
  outlivesProcesses: boolean;
  /** brig removes the container at its end, and not the engine, which would do it when it is restarted. Default: the engine does. */
  staysAtEnd?: boolean;
  /** Further arguments of the runner. */
  runnerArguments: readonly string[];
  /** Anyone with access to the engine can read these, so the caller's variables are not among them. */
  containerEnvironment: Record<string, string>;
  /** The image's variables that are sent with each command. */
  imageEnvironment: Record<string, string>;
  /** The caller's variables, sent with each command. */
  callerEnvironment: Record<string, string>;
  /** Names of the image's variables and labels, which the container must not inherit. */
  overridden: { environment: string[]; labels: string[] };
  labels: Record<string, string>;
}

/** "shared" is the kernel that the engine itself runs on. */
export type Kernel = "shared" | "gvisor";

export interface PlannedMount {
  /**
   * A "pin" is a directory above a protected path, mounted onto itself so that it cannot be renamed. "private" is
   * what brig itself mounts, not the user; "repository" a git directory outside of the workspace, or the file that names it.
   */
  kind: "workspace" | "writable-root" | "pin" | "protected" | "private" | "repository";
  path: string;
  access: "ro" | "rw";
  /** The identity that the path must have inside the container; null for a placeholder, which does not exist yet. */
  identity: Identity | null;
  /** The volume or host path that is mounted at the path; undefined for the host's own file or directory of that path. */
  source?: MountSource | undefined;
}

type MountSource = { kind: "volume"; volume: string } | { kind: "host"; path: string };

/** A copy-on-write workspace: what is written goes to the upper layer, and the lower one is only read. */
export interface OverlayLayers {
  /** The id of the tree, which several sandboxes may share. */
  id: string;
  /** The path in the container at which the tree is mounted. */
  path: string;
  /** The host's directory, and the identity that it must still have when it is mounted. */
  lower: string;
  identity: Identity;
  /** The directories of two of the engine's volumes, on the engine's machine. */
  upper: string;
  work: string;
  /** Entries of the tree and their inodes in the workspace, by which the lower layer is recognised. */
  witnesses: readonly { path: string; ino: string }[];
}

/** A file's device and inode numbers on the host, in decimal. */
export interface Identity {
  dev: string;
  ino: string;
}

export interface CoveredFile {
  /** The path in the sandbox. */
  path: string;
  /** The identity of the host's file, which the sandbox must not see there. */
  identity: Identity;
}

export interface KnownDirectory {
  path: string;
  /** The inode in decimal. */
  ino: string;
}

export interface PlannedTmpfs {
  path: string;
  sizeBytes: number;
  maxInodes: number;
  exec: boolean;
  /** The mode in octal. */
  mode: string;
  uid: number;
  gid: number;
}

export interface PlannedLimits {
  memoryBytes: number;
  nanoCpus: number;
  pids: number;
  openFiles: number;
  shmBytes: number;
  /** The most files in /dev/shm. */
  shmInodes: number;
  /** Sysctls of the IPC namespace, e.g. "kernel.shmall". Empty if the engine may not set them. */
  ipc: Record<string, string>;
  coreBytes: number;
  /** The most terminals; the machine has only so many for all of its programs. */
  terminals: number;
}
