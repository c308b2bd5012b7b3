import type { SandboxPlan } from "./plan.js";

/**
 * Paths hidden from commands: those that Docker hides, and those through which uid 0 can inspect or change
 * the host's kernel without any capability. For example, reading zram-control/hot_add creates a device.
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

/**
 * Settings of PID 1, the runner. As uid 0, a command could otherwise make it the kernel's first choice when
 * memory runs out. Not all of /proc/1, because engines write its security labels late.
 */
const RUNNER_SETTINGS = ["/proc/1", "/proc/1/task/1"].flatMap((directory) =>
  ["autogroup", "clear_refs", "coredump_filter", "oom_adj", "oom_score_adj"].map(
    (name) => `${directory}/${name}`,
  ),
);

/** With /dev read-only, commands can still write to its devices, but cannot replace them. */
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
