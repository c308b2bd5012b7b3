import { appliesSeccomp, ignoresCgroups, runtimeOf } from "../docker/diagnosis/gvisor.js";
import type { EngineInfo } from "../docker/engine-types.js";
import type { SandboxPlan } from "../plan/plan.js";
import type { Assertion } from "./difference.js";
import type { KernelReport } from "./kernel-report.js";

type Excuses = Partial<Record<Assertion, string>>;

/**
 * Assertions that gVisor cannot show by design. Nothing else excuses an assertion for a runtime, and every proof lists
 * the excused ones.
 */
const GVISOR: Excuses = {
  "A4-no-new-privileges": "gVisor does not report NoNewPrivs in /proc/self/status",
  "A11-kernel-settings": "gVisor's /proc is its own and does not reach the host's settings",
  "B6-nosuid-nodev": "gVisor does not list nosuid and nodev of its mounts",
  "B10-identity": "gVisor numbers devices and inodes itself",
  "F8-inodes": "gVisor has no inode caps on its tmpfs mounts",
  "B18-devices": "gVisor ignores read-only paths: as uid 0, a command can replace a device with another file",
  "F20-terminals": "gVisor has terminals of its own",
  "F17-ipc": "gVisor has no limits for System V IPC and message queues",
};

const WITHOUT_FILTERS =
  "gVisor loads a container's system call filter only when it is started with --oci-seccomp";

const UNFILTERED: Excuses = {
  "A5-seccomp": WITHOUT_FILTERS,
  "A10-setuid-bits":
    "gVisor without --oci-seccomp sets setuid and setgid bits, also on the host's files in a writable workspace; inside they have no effect",
  "N-system-calls": WITHOUT_FILTERS,
};

/** Empty unless the container runs on gVisor, whatever its runtime is called. */
export function runtimeExcuses(
  plan: Pick<SandboxPlan, "runtime" | "kernel">,
  report: Pick<KernelReport, "kernel">,
  engine: EngineInfo,
): Excuses {
  if (plan.kernel !== "gvisor" || report.kernel !== "gvisor") return {};
  const runtime = runtimeOf(engine, plan.runtime);
  return {
    ...GVISOR,
    ...(appliesSeccomp(runtime) ? {} : UNFILTERED),
    "F1-limits": limitsReason(ignoresCgroups(runtime)),
    "F2-swap": limitsReason(ignoresCgroups(runtime)),
  };
}

function limitsReason(ignores: boolean | null): string {
  if (ignores === true) return "gVisor is started with --ignore-cgroups: there is no limit";
  const inside = "gVisor's cgroup files are its own, without the container's limits";
  return ignores === false
    ? `${inside}: the host's kernel enforces these for gVisor as a whole`
    : `${inside}: the host's kernel enforces these for gVisor as a whole, unless it is started with --ignore-cgroups`;
}
