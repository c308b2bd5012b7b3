import type { SandboxPlan } from "../plan/plan.js";
import type { Difference } from "./difference.js";
import type { KernelReport } from "./kernel-report.js";

/** The kernel counts CPU time in whole microseconds per period, so it rounds. */
const CPU_TOLERANCE = 1e-3;

export function compareLimits(
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
