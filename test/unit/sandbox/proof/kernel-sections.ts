import type { PlannedMount, SandboxPlan } from "../../../../src/sandbox/plan/plan.js";

/** The probes of the runner, with the answers that brig's filter gives. */
const FILTERED_PROBES: Record<string, number> = {
  "socket-vsock": 1,
  "socket-alg": 1,
  "socket-packet": 1,
  "io-uring": 1,
  ptrace: 1,
  "unshare-user": 1,
  mount: 1,
  "chmod-setuid": 1,
  bpf: 1,
  keyctl: 1,
  userfaultfd: 1,
  clone3: 38,
  "write-root": 30,
  "netlink-uevent": 93,
  "mknod-device": 1,
  "io-setup": 38,
  "lock-of-open-file": 22,
  "affinity-of-others": 0,
  "read-slabinfo": 61,
  "read-vmallocinfo": 61,
};

/** What a kernel that enforces `plan` reports, section by section in the kernel's own format. */
export function reportSections(plan: SandboxPlan, cgroupVersion: "1" | "2" = "1"): Map<string, string> {
  return new Map([
    ["/proc/self/status", status(plan)],
    ["/proc/self/mountinfo", mountTable(plan)],
    ["/proc/self/limits", resourceLimits(plan)],
    ["/proc/net/dev", interfaces(plan.network === "none" ? ["lo"] : ["lo", "eth0"])],
    ["/proc/net/route", "Iface\tDestination\tGateway \tFlags\n"],
    ["/proc/net/ipv6_route", ipv6Route("lo")],
    ["/proc/sys/kernel/hostname", "brig\n"],
    ["environment", environment(plan)],
    ...Object.entries(plan.limits.ipc).map(([name, value]): [string, string] => [
      `/proc/sys/${name.replaceAll(".", "/")}`,
      `${value.replaceAll(" ", "\t")}\n`,
    ]),
    ...(cgroupVersion === "1" ? cgroupV1(plan) : cgroupV2(plan)),
    ...Object.entries(FILTERED_PROBES).map(([name, errno]): [string, string] => [
      `probe/${name}`,
      `${errno}`,
    ]),
    ...plan.mounts.flatMap(({ path, identity }): [string, string][] =>
      identity === null ? [] : [[`stat/${path}`, `${identity.dev} ${identity.ino} 40755 1000 1000 1`]],
    ),
  ]);
}

export function asBytes(sections: ReadonlyMap<string, string>): Map<string, Buffer> {
  return new Map([...sections].map(([name, text]) => [name, Buffer.from(text)]));
}

export function ipv6Route(interfaceName: string): string {
  return `${"0".repeat(32)} 00 ${"0".repeat(32)} 00 ${"0".repeat(32)} ffffffff 00000001 00000000 00200200 ${interfaceName.padStart(8)}\n`;
}

export function interfaces(names: string[]): string {
  const header =
    "Inter-|   Receive                            |  Transmit\n face |bytes    packets errs drop fifo frame|bytes\n";
  return (
    header +
    names.map((name) => `${name.padStart(6)}:       0       0    0    0    0     0          0\n`).join("")
  );
}

function environment({ containerEnvironment }: SandboxPlan): string {
  const entries = Object.entries({ ...containerEnvironment, HOSTNAME: "brig" });
  return entries.map(([name, value]) => `${name}=${value}\0`).join("");
}

function status({ user, noNewPrivileges, capabilities }: SandboxPlan): string {
  const masks = { none: 0, "full-access": 0x200425fb, "engine-default": 0xa80425fb, tree: 0x1f };
  const mask = masks[capabilities].toString(16).padStart(16, "0");
  const four = (id: number) => [id, id, id, id].join("\t");
  return [
    "Name:\trunner",
    "State:\tR (running)",
    `Uid:\t${four(user.uid)}`,
    `Gid:\t${four(user.gid)}`,
    `Groups:\t${user.gid} `,
    "CapInh:\t0000000000000000",
    `CapPrm:\t${mask}`,
    `CapEff:\t${mask}`,
    `CapBnd:\t${mask}`,
    "CapAmb:\t0000000000000000",
    `NoNewPrivs:\t${noNewPrivileges ? 1 : 0}`,
    "Seccomp:\t2",
    "Seccomp_filters:\t1",
    "",
  ].join("\n");
}

function mountTable(plan: SandboxPlan): string {
  const rows = [
    ["/", plan.rootfs, "overlay", "rw,lowerdir=/var/lib/docker/overlay2/l/A:/var/lib/docker/overlay2/l/B"],
    ["/proc", "rw,nosuid,nodev,noexec", "proc", "rw"],
    ["/dev", "rw,nosuid", "tmpfs", "rw,size=65536k,mode=755"],
    ...(plan.rootfs === "ro" ? [["/dev", "ro,nosuid", "tmpfs", "rw,size=65536k,mode=755"]] : []),
    ["/dev/pts", "rw,nosuid,noexec", "devpts", `rw,gid=5,mode=620,ptmxmode=666,max=${plan.limits.terminals}`],
    ["/sys", "ro,nosuid,nodev,noexec", "sysfs", "ro"],
    ["/sys/fs/cgroup", "ro,nosuid,nodev,noexec", "cgroup2", "rw"],
    ["/dev/mqueue", "rw,nosuid,nodev,noexec", "mqueue", "rw"],
    [
      "/dev/shm",
      "rw,nosuid,nodev,noexec",
      "tmpfs",
      `rw,size=${plan.limits.shmBytes / 1024}k,nr_inodes=${plan.limits.shmInodes}`,
    ],
    ...plan.tmpfs.map(({ path, exec, sizeBytes, maxInodes }) => [
      path,
      `rw,nosuid,nodev${exec ? "" : ",noexec"}`,
      "tmpfs",
      `rw,size=${sizeBytes / 1024}k,nr_inodes=${maxInodes},mode=700`,
    ]),
    ...plan.parents.map((path) => [path, "ro,nosuid,nodev,noexec", "tmpfs", "ro,size=64k"]),
    ["/.brig", "ro", "ext4", "rw"],
    ["/etc/hosts", "ro", "ext4", "rw"],
    ...plan.mounts.map(({ path, access }: PlannedMount) => [escapePath(path), access, "ext4", "rw"]),
    ["/proc/sys", "ro,nosuid,nodev,noexec", "proc", "rw"],
  ];
  const masks = "60 10 0:43 /null /proc/keys rw,nosuid - tmpfs tmpfs rw,size=65536k,mode=755\n";
  return (
    rows
      .map(([path, options, type, superOptions], id) =>
        row({ id: id + 10, path, options, type, superOptions }),
      )
      .join("") + masks
  );
}

/** A bind shows the device of the host's file system, and which of its directories it is. */
function row({ id, path, options, type, superOptions }: Record<string, string | number | undefined>): string {
  const [device, root] = type === "ext4" ? ["254:0", path] : [`0:${id}`, "/"];
  return `${id} 9 ${device} ${root} ${path} ${options},relatime - ${type} ${type} ${superOptions}\n`;
}

function escapePath(path: string): string {
  return path.replace(
    /[ \t\n\\]/g,
    (character) => `\\${character.charCodeAt(0).toString(8).padStart(3, "0")}`,
  );
}

function resourceLimits({ limits }: SandboxPlan): string {
  const line = (name: string, limit: number | string, unit: string) =>
    `${name.padEnd(25)} ${String(limit).padEnd(20)} ${String(limit).padEnd(20)} ${unit}\n`;
  return (
    `${"Limit".padEnd(25)} ${"Soft Limit".padEnd(20)} ${"Hard Limit".padEnd(20)} Units\n` +
    line("Max cpu time", "unlimited", "seconds") +
    line("Max core file size", limits.coreBytes, "bytes") +
    line("Max open files", limits.openFiles, "files")
  );
}

function cgroupV1({ limits }: SandboxPlan): [string, string][] {
  return [
    ["/sys/fs/cgroup/memory/memory.limit_in_bytes", `${limits.memoryBytes}\n`],
    ["/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes", `${limits.memoryBytes}\n`],
    ["/sys/fs/cgroup/pids/pids.max", `${limits.pids}\n`],
    ["/sys/fs/cgroup/cpu/cpu.cfs_quota_us", `${limits.nanoCpus / 1e4}\n`],
    ["/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"],
  ];
}

function cgroupV2({ limits }: SandboxPlan): [string, string][] {
  return [
    ["/sys/fs/cgroup/memory.max", `${limits.memoryBytes}\n`],
    ["/sys/fs/cgroup/memory.swap.max", "0\n"],
    ["/sys/fs/cgroup/pids.max", `${limits.pids}\n`],
    ["/sys/fs/cgroup/cpu.max", `${limits.nanoCpus / 1e4} 100000\n`],
  ];
}
