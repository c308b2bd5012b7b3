/** The names of what is read back. */
export type Assertion =
  | "A0-kernel"
  | "A3-capabilities"
  | "A4-no-new-privileges"
  | "A5-seccomp"
  | "A6-user"
  | "A9-hostname"
  | "A10-setuid-bits"
  | "A11-kernel-settings"
  | "A21-environment"
  | "B1-rootfs"
  | "B4-writable-mounts"
  | "B5-tmpfs"
  | "B6-noexec"
  | "B6-nosuid-nodev"
  | "B10-identity"
  | "B18-devices"
  | "B19-overlay"
  | "B11-mounts"
  | "B22-listeners"
  | "E1-network"
  | "F1-limits"
  | "F2-swap"
  | "F8-inodes"
  | "F14-resource-limits"
  | "F17-ipc"
  | "F20-terminals"
  | "N-system-calls";

/** The promise of the plan, and the kernel's different answer. */
export interface Difference {
  assertion: Assertion;
  promised: string;
  kernel: string;
}
