import type { Policy } from "../../policy/policy.js";

/** Everything that is promised about one sandbox, resolved: sizes in bytes, paths absolute, nothing left to a default. */
export interface SandboxPlan {
  sessionId: string;
  /** The mode or policy file. */
  policyName: string;
  image: string;
  /** Null for the engine's default. */
  runtime: string | null;
  /** Expected to answer in the container; what answers is in the kernel's report. */
  kernel: Kernel;
  /** Null without one. */
  workspace: string | null;
  /** Where commands start: the workspace, or `/` without one. */
  workingDirectory: string;
  /** HOME of commands. */
  home: string;
  rootfs: "ro" | "rw";
  /** Binds of host directories at their own path, parents before children. */
  mounts: PlannedMount[];
  tmpfs: PlannedTmpfs[];
  /** Directories below a tmpfs that lead to a root and exist only inside: each is an empty tmpfs of its own, read-only. */
  parents: string[];
  /** Protected names that do not exist yet: to be made on the host just before the container is created. */
  placeholders: string[];
  user: { uid: number; gid: number };
  network: "none" | "bridge";
  capabilities: Policy["capabilities"];
  noNewPrivileges: boolean;
  seccomp: Policy["seccomp"];
  limits: PlannedLimits;
  /** 0: for ever. */
  leaseSeconds: number;
  /** In the container's description, where anyone with the engine can read it: no secret, nothing of the caller's. */
  containerEnvironment: Record<string, string>;
  /** Of the image's environment what is sent with each command. */
  imageEnvironment: Record<string, string>;
  /** The caller's, sent with each command. */
  callerEnvironment: Record<string, string>;
  /** Names that the image gives, and that the container must not take over from it. */
  overridden: { environment: string[]; labels: string[] };
  labels: Record<string, string>;
}

/** "shared": the one that the engine runs on. */
export type Kernel = "shared" | "gvisor";

export interface PlannedMount {
  /** "pin": an ancestor of a protected path, bound onto itself so that it cannot be renamed away. */
  kind: "workspace" | "writable-root" | "pin" | "protected";
  path: string;
  access: "ro" | "rw";
  /** What the path must lead to inside; null for a placeholder, which does not exist yet. */
  identity: Identity | null;
}

/** A file of the host's, as its kernel numbers it; decimal. */
export interface Identity {
  dev: string;
  ino: string;
}

export interface PlannedTmpfs {
  path: string;
  sizeBytes: number;
  maxInodes: number;
  exec: boolean;
  /** Octal. */
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
  /** Files in /dev/shm. */
  shmInodes: number;
  /** Kernel settings of the IPC namespace, e.g. "kernel.shmall"; none where the engine may not set them. */
  ipc: Record<string, string>;
  coreBytes: number;
}
