import type { EngineInfo } from "../../docker/engine-types.js";
import type { SandboxPlan } from "../plan/plan.js";
import { compareAuthority, compareSystemCalls } from "./compare-authority.js";
import { compareLimits } from "./compare-limits.js";
import { compareMounts } from "./compare-mounts.js";
import type { Assertion, Difference } from "./difference.js";
import type { KernelReport } from "./kernel-report.js";
import { runtimeDifferences } from "./runtime-differences.js";

/** A promise that this engine or runtime cannot show. */
export interface NotProvable extends Difference {
  /** Why this runtime or engine cannot show it. */
  reason: string;
}

/**
 * The outcome of one read-back, as it is recorded with the session. The policy holds when `differences` is
 * empty.
 */
export interface Proof {
  policy: string;
  differences: Difference[];
  notProvable: NotProvable[];
  /** The kernel's answers in short. */
  summary: Record<string, string>;
  engine: { product: string; version: string; kernel: string; cgroupVersion: string };
  runtime: string;
  imageId: string;
}

export interface ProofContext {
  engine: EngineInfo;
  imageId: string;
  /**
   * `os.release()` of this machine: another kernel than the engine's means another machine or a virtual one.
   */
  hostKernel: string;
}

/** Every promise of the plan that the report does not bear out. A fact the report lacks bears out nothing. */
export function compareProof(plan: SandboxPlan, report: KernelReport): Difference[] {
  return [
    ...compareAuthority(plan, report),
    ...compareSystemCalls(plan, report),
    ...compareMounts(plan, report),
    ...compareLimits(plan, report),
  ];
}

/** Compares, and sets aside what this runtime or engine cannot show. */
export function proveSandbox(plan: SandboxPlan, report: KernelReport, context: ProofContext): Proof {
  const { engine, imageId } = context;
  const excuses = { ...engineDifferences(report, context), ...runtimeDifferences(plan, report, engine) };
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

/** What the machine under the engine cannot show, whatever the runtime. */
function engineDifferences(
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
  const said = (fact: unknown) => (fact === null ? "unknown" : String(fact));
  return {
    kernel: report.kernel,
    uid: said(identity.uids?.[1] ?? null),
    gid: said(identity.gids?.[1] ?? null),
    groups: said(identity.groups),
    capabilities:
      [...identity.capabilities].map(([set, mask]) => `${set} ${mask.toString(16)}`).join(", ") || "unknown",
    noNewPrivileges: said(identity.noNewPrivileges),
    seccompMode: said(identity.seccompMode),
    interfaces: said(interfaces),
    mounts: said(mounts?.length ?? null),
    memoryBytes: said(cgroup.memoryBytes),
    swapBytes: said(cgroup.swapBytes),
    pids: said(cgroup.pids),
    cpus: said(cgroup.cpus),
    probes: [...report.probes].map(([name, errno]) => `${name} ${errno}`).join(", ") || "none",
  };
}
