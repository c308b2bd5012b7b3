import type { Assertion } from "./proof.js";

/**
 * What a runtime cannot show, by design of the runtime. The one place that says so: nothing else excuses an assertion,
 * and what is excused appears in every proof as not provable.
 */
const GVISOR: Partial<Record<Assertion, string>> = {
  "A4-no-new-privileges": "gVisor does not report NoNewPrivs in /proc/self/status",
  "A5-seccomp": "gVisor answers system calls in a kernel of its own and does not load the engine's filter",
  "A10-setuid-bits":
    "gVisor sets setuid and setgid bits, on the host's files in a writable workspace too; inside they are without effect",
  "A11-kernel-settings": "gVisor's /proc is its own: no path of it reaches the host's settings",
  "B6-nosuid-nodev": "gVisor does not list nosuid and nodev of its mounts",
  "B10-identity": "gVisor numbers devices and inodes itself",
  "F1-limits": "gVisor shows no cgroup files, and with --ignore-cgroups there is no limit to show",
  "F2-swap": "gVisor shows no cgroup files, and with --ignore-cgroups there is no limit to show",
  "F8-inodes": "gVisor has no inode caps on its tmpfs mounts",
  "F14-resource-limits": "gVisor has no /proc/self/limits",
  "N-system-calls":
    "gVisor answers system calls in a kernel of its own and does not load the engine's filter",
};

/** The table for an OCI runtime by its configured name, e.g. `runsc` or `runsc-kvm`; empty for one that shares the kernel. */
export function runtimeDifferences(runtime: string): Partial<Record<Assertion, string>> {
  return isGvisor(runtime) ? GVISOR : {};
}

export function isGvisor(runtime: string): boolean {
  return /(?:^|[/._-])(?:runsc|gvisor)(?:$|[/._-])/.test(runtime);
}
