import type { SandboxPlan } from "./plan.js";

/**
 * Hidden from commands: what Docker hides, and what shows or changes the host's kernel to uid 0 even without a capability
 * (reading zram-control/hot_add makes a device).
 */
export const MASKED_PATHS: readonly string[] = [
  "/proc/acpi",
  "/proc/asound",
  "/proc/interrupts",
  "/proc/kcore",
  "/proc/keys",
  "/proc/kmsg",
  "/proc/kpagecgroup",
  "/proc/kpagecount",
  "/proc/kpageflags",
  "/proc/latency_stats",
  "/proc/pagetypeinfo",
  "/proc/sched_debug",
  "/proc/scsi",
  "/proc/slabinfo",
  "/proc/timer_list",
  "/proc/timer_stats",
  "/proc/vmallocinfo",
  "/sys/class/zram-control",
  "/sys/devices/virtual/powercap",
  "/sys/firmware",
  "/sys/kernel/debug",
  "/sys/kernel/mm/damon",
  "/sys/kernel/slab",
  "/sys/kernel/tracing",
];

/** Of PID 1, which as uid 0 a command could name as the first to be killed. Not all of it: engines write its labels late. */
const RUNNER_SETTINGS = ["/proc/1", "/proc/1/task/1"].flatMap((directory) =>
  ["autogroup", "clear_refs", "coredump_filter", "oom_adj", "oom_score_adj"].map(
    (name) => `${directory}/${name}`,
  ),
);

/** Kept from being written; a device in /dev can be written to all the same, but no other put in its place. */
export function readOnlyPaths({ rootfs }: SandboxPlan): string[] {
  return [
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/pressure",
    "/proc/sys",
    "/proc/sysrq-trigger",
    ...RUNNER_SETTINGS,
    ...(rootfs === "ro" ? ["/dev"] : []),
  ];
}
