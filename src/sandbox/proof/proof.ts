import type { EngineInfo } from "../docker/engine-types.js";
import type { EgressInForce } from "../network/egress/in-force.js";
import type { SandboxPlan } from "../plan/plan.js";
import { compareAuthority, compareSystemCalls } from "./compare-authority.js";
import { compareLimits } from "./compare-limits.js";
import { compareMounts } from "./compare-mounts.js";
import type { Assertion, Difference } from "./difference.js";
import type { KernelReport } from "./kernel-report.js";
import { runtimeExcuses } from "./runtime-excuses.js";

/** A promise that this engine or runtime cannot show. */
export interface NotProvable extends Difference {
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
