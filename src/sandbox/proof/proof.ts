import { appliesSeccomp, ignoresCgroups, runtimeOf } from "../docker/diagnosis/gvisor.js";
import type { EngineInfo } from "../docker/engine-types.js";
import type { EgressInForce } from "../network/egress/in-force.js";
import type { SandboxPlan } from "../plan/plan.js";
import { compareAuthority, compareSystemCalls } from "./compare-authority.js";
import { compareMounts } from "./compare-mounts.js";
import type { Assertion, Difference } from "./difference.js";
import type { KernelReport } from "./kernel-report.js";

/** A promise that this engine or runtime cannot show. */
interface NotProvable extends Difference {
  /** Why this runtime or engine cannot show it. */
  reason: string;
}

/** The outcome of reading the policy back. It is enforced when `differences` is empty. */
export interface Proof {
  policy: string;
  differences: Difference[];
  notProvable: NotProvable[];
  summary: Record<string, string>;
  engine: { product: string; version: string; kernel: string; cgroupVersion: string };
  runtime: string;
  imageId: string;
  /**
   * The names of the rules for requests, secrets and canaries that were in force. brig's proxy enforces them outside of the
   * sandbox, so that the kernel, which confirms everything else here, knows nothing of them. Absent if there are none.
   */
  egress?: EgressInForce;
}

export interface ProofContext {
  engine: EngineInfo;
  imageId: string;
  /** `os.release()` of this machine. The engine's differs on another machine or a virtual one. */
  hostKernel: string;
}

/** Returns everything that the report does not confirm. A fact that is missing confirms nothing. */
export function compareProof(plan: SandboxPlan, report: KernelReport): Difference[] {
  return [
    ...compareAuthority(plan, report),
    ...compareSystemCalls(plan, report),
    ...compareMounts(plan, report),
    ...compareLimits(plan, report),
  ];
}

/** Compares the plan with the report, and separates what this runtime or engine cannot show. */
export function proveSandbox(plan: SandboxPlan, report: KernelReport, context: ProofContext): Proof {
  const { engine, imageId } = context;
  const excuses = { ...engineExcuses(report, context), ...runtimeExcuses(plan, report, engine) };
  const found = compareProof(plan, report);
  return {
    policy: plan.policyName,
    differences: found.filter(({ assertion }) => excuses[assertion] === undefined),
    notProvable: found.flatMap((difference) => {
      const reason = excuses[difference.assertion];
      return reason === undefined ? [] : [{ ...difference, reason }];
    }),
    summary: summarize(report),
    engine: {
      product: engine.product,
      version: engine.version,
      kernel: engine.kernel,
      cgroupVersion: engine.cgroupVersion,
    },
    runtime: plan.runtime ?? engine.defaultRuntime,
    imageId,
  };
}

/** Assertions that the engine's machine cannot show, with any runtime, and the reason for each. */
function engineExcuses(
  report: KernelReport,
  { engine, hostKernel }: ProofContext,
): Partial<Record<Assertion, string>> {
  const isAnotherKernel = engine.kernel !== hostKernel;
  const lacksSwapAccounting = report.cgroup.memoryBytes !== null && report.cgroup.swapBytes === null;
  return {
    ...(isAnotherKernel && {
      "B10-identity": "the engine runs in a virtual machine, which numbers devices and inodes itself",
    }),
    ...(lacksSwapAccounting && { "F2-swap": "the engine's kernel does not count swap per cgroup" }),
  };
}

function summarize(report: KernelReport): Record<string, string> {
  const { identity, cgroup, interfaces, mounts } = report;
  const describe = (fact: unknown) => (fact === null ? "unknown" : String(fact));
  return {
    kernel: report.kernel,
    uid: describe(identity.uids?.[1] ?? null),
    gid: describe(identity.gids?.[1] ?? null),
    groups: describe(identity.groups),
    capabilities:
      [...identity.capabilities].map(([set, mask]) => `${set} ${mask.toString(16)}`).join(", ") || "unknown",
    noNewPrivileges: describe(identity.noNewPrivileges),
    seccompMode: describe(identity.seccompMode),
    interfaces: describe(interfaces),
    mounts: describe(mounts?.length ?? null),
    memoryBytes: describe(cgroup.memoryBytes),
    swapBytes: describe(cgroup.swapBytes),
    pids: describe(cgroup.pids),
    cpus: describe(cgroup.cpus),
    probes: [...report.probes].map(([name, errno]) => `${name} ${errno}`).join(", ") || "none",
  };
}

/** The kernel counts CPU time in whole microseconds per period, so it rounds. */
const CPU_TOLERANCE = 1e-3;

function compareLimits(
  { limits }: SandboxPlan,
  { cgroup, resourceLimits, settings }: KernelReport,
): Difference[] {
  const found: Difference[] = [];
  const expect = (
    assertion: Difference["assertion"],
    name: string,
    promised: number,
    kernel: number | null,
  ) => {
    if (kernel !== null && Math.abs(kernel - promised) <= (name === "cpus" ? CPU_TOLERANCE : 0)) return;
    found.push({ assertion, promised: `${name} ${promised}`, kernel: `${name} ${kernel ?? "unknown"}` });
  };
  expect("F1-limits", "memory bytes", limits.memoryBytes, cgroup.memoryBytes);
  expect("F1-limits", "pids", limits.pids, cgroup.pids);
  expect("F1-limits", "cpus", limits.nanoCpus / 1e9, cgroup.cpus);
  expect("F2-swap", "swap bytes", 0, cgroup.swapBytes);
  for (const [name, promised] of [
    ["Max open files", limits.openFiles],
    ["Max core file size", limits.coreBytes],
  ] as const)
    expect("F14-resource-limits", name, promised, resourceLimits.get(name)?.hard ?? null);
  for (const [name, promised] of Object.entries(limits.ipc)) {
    const kernel = settings.get(name);
    if (kernel !== promised)
      found.push({
        assertion: "F17-ipc",
        promised: `${name} ${promised}`,
        kernel: `${name} ${kernel ?? "unknown"}`,
      });
  }
  return found;
}

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
function runtimeExcuses(
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
