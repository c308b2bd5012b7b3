import type { ContainerBody, Mount } from "../docker/engine-types.js";
import { NAME_SERVER } from "../egress/addresses.js";
import type { Toolbox } from "../images/toolbox-volume.js";
import type { PlannedMount, PlannedTmpfs, SandboxPlan } from "./plan.js";

export interface ContainerSecrets {
  toolbox: Toolbox;
  /** SHA-256 of the session's token in hex. The token itself never appears in the container's description. */
  tokenHash: string;
  /** The policy's seccomp profile; not used when the policy keeps the engine's own. */
  seccompJson: string;
}

export const TOOLBOX_PATH = "/.brig";

/** The directory of the devices of terminals. */
export const TERMINALS_PATH = "/dev/pts";

/** Hides gVisor's own cgroup files: root may write to them, and their limits would affect the runner. */
const GVISOR_MASKS = { "/sys/fs/cgroup": "ro,nosuid,nodev,noexec,size=65536,mode=555" };

/** GVisor cannot load a program that is executable but not readable, as the ordinary runner is. */
export function runnerPath({ kernel }: Pick<SandboxPlan, "kernel">): string {
  return `${TOOLBOX_PATH}/${kernel === "gvisor" ? "runner-gvisor" : "runner"}`;
}

/** The program beside the runner that does its file operations, and that hands it the streams of an exec. */
export function filesProgramPath(plan: Pick<SandboxPlan, "kernel">): string {
  return `${runnerPath(plan)}-files`;
}

/** Read-only works: the runtime creates the mount points inside before it makes the tmpfs read-only. */
function parentOptions({ user: { uid, gid } }: SandboxPlan): string {
  return `ro,nosuid,nodev,noexec,size=65536,nr_inodes=1024,mode=755,uid=${uid},gid=${gid}`;
}

const ABSENT_OPTIONS = "ro,nosuid,nodev,noexec,size=65536,nr_inodes=16,mode=555";
export const CONTAINER_HOSTNAME = "brig";

/** Root could otherwise leave devices, and programs with capabilities, in a directory of the host. */
const DROPPED_CAPABILITIES: Record<SandboxPlan["capabilities"], string[]> = {
  none: ["ALL"],
  "full-access": ["MKNOD", "SETFCAP"],
  "engine-default": [],
  tree: ["ALL"],
};

/** The capabilities to read and write every file of a tree under its own owner and mode. */
const ADDED_CAPABILITIES: Partial<Record<SandboxPlan["capabilities"], string[]>> = {
  tree: ["CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID"],
};

/** The body of the engine's create request. The same plan always gives the same body. */
export function createContainerBody(plan: SandboxPlan, secrets: ContainerSecrets): ContainerBody {
  const { toolbox } = secrets;
  const names = plan.network === "none" ? nameFiles(toolbox, plan) : [];
  return {
    Image: plan.image,
    Entrypoint: [runnerPath(plan)],
    Cmd: [
      ...["serve", "--token-hash", secrets.tokenHash, "--lease", String(plan.leaseSeconds)],
      ...["--first-stream", "stdio", ...plan.runnerArguments],
    ],
    User: `${plan.user.uid}:${plan.user.gid}`,
    // The engine would create the working directory in the image. The runner sets that of each command.
    WorkingDir: "/",
    Hostname: CONTAINER_HOSTNAME,
    Env: environment(plan),
    Labels: { ...blank(plan.overridden.labels), ...plan.labels },
    // The runtime alone makes the same empty network, which halves the time of a start. The engine then makes
    // no /etc/hosts and no /etc/resolv.conf.
    ...(names.length > 0 && { NetworkDisabled: true }),
    // An image's health check would run outside any supervisor, and even in a container that brig is about to
    // refuse.
    Healthcheck: { Test: ["NONE"] },
    // The host's first stream is the runner's standard input and output; it ends when the host detaches.
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
    OpenStdin: true,
    StdinOnce: true,
    Tty: false,
    // PID 1 ignores SIGTERM, so an engine that shuts down would wait ten seconds for it.
    StopSignal: "SIGKILL",
    HostConfig: {
      AutoRemove: !plan.outlivesProcesses && plan.staysAtEnd !== true,
      Privileged: false,
      ReadonlyRootfs: plan.rootfs === "ro",
      NetworkMode: plan.network,
      IpcMode: "private",
      // On cgroup v1 the engine's default is the host's namespace.
      CgroupnsMode: "private",
      CapDrop: DROPPED_CAPABILITIES[plan.capabilities],
      CapAdd: ADDED_CAPABILITIES[plan.capabilities] ?? [],
      SecurityOpt: securityOptions(plan, secrets.seccompJson),
      Mounts: [
        volumeMount(toolbox.volume, { Target: TOOLBOX_PATH, ReadOnly: true }),
        ...names,
        ...plan.mounts.map(plannedMount),
        ...plan.volumes.map(({ volume, path }) => volumeMount(volume, { Target: path, ReadOnly: false })),
        // gVisor has terminals of its own.
        ...(plan.kernel === "shared" ? [terminalsMount(plan)] : []),
      ],
      Tmpfs: {
        ...Object.fromEntries(
          [...plan.tmpfs, sharedMemory(plan)].map((one) => [one.path, tmpfsOptions(one)]),
        ),
        ...Object.fromEntries(plan.parents.map((path) => [path, parentOptions(plan)])),
        ...Object.fromEntries(plan.absentNames.map((path) => [path, ABSENT_OPTIONS])),
        ...(plan.kernel === "gvisor" && GVISOR_MASKS),
      },
      // A log on disk could be filled, and forged through /proc/1/fd/1.
      LogConfig: { Type: "none", Config: {} },
      RestartPolicy: { Name: "no" },
      ...(plan.runtime === null ? {} : { Runtime: plan.runtime }),
      // As `docker run --gpus` asks for them.
      ...(plan.gpus !== undefined && {
        DeviceRequests: [
          { Driver: "", Count: plan.gpus, DeviceIDs: null, Capabilities: [["gpu"]], Options: {} },
        ],
      }),
      Init: false,
      MaskedPaths: [...MASKED_PATHS, ...plan.covered.map(({ path }) => path)],
      ReadonlyPaths: readOnlyPaths(plan),
      ...(plan.egress !== null && names.length === 0 && NAMES_FROM_BRIG),
      // The runner listens on ports of the web and of DNS without a capability.
      Sysctls: {
        ...plan.limits.ipc,
        ...(plan.egress !== null && { "net.ipv4.ip_unprivileged_port_start": "0" }),
      },
      ShmSize: plan.limits.shmBytes,
      Memory: plan.limits.memoryBytes,
      MemorySwap: plan.limits.memoryBytes,
      NanoCpus: plan.limits.nanoCpus,
      PidsLimit: plan.limits.pids,
      Ulimits: [
        { Name: "core", Soft: plan.limits.coreBytes, Hard: plan.limits.coreBytes },
        { Name: "nofile", Soft: plan.limits.openFiles, Hard: plan.limits.openFiles },
      ],
    },
  };
}

/** A name without a value makes the engine drop the image's variable of that name. */
function environment({ containerEnvironment, overridden }: SandboxPlan): string[] {
  const foreign = overridden.environment.filter((name) => !(name in containerEnvironment));
  return [...Object.entries(containerEnvironment).map(([name, value]) => `${name}=${value}`), ...foreign];
}

/** An image's labels cannot be removed, so they become empty: other programs on the host act on labels. */
function blank(names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, ""]));
}

function securityOptions(plan: SandboxPlan, seccompJson: string): string[] {
  const profile = plan.kernel === "gvisor" ? seccompForGvisor(seccompJson) : seccompJson;
  return [
    ...(plan.noNewPrivileges ? ["no-new-privileges"] : []),
    ...(plan.seccomp !== "engine-default" ? [`seccomp=${profile}`] : []),
  ];
}

/** No search domain: it would be that of the engine's machine, appended to names that are not allowed. */
const NAMES_FROM_BRIG = { Dns: [NAME_SERVER.address], DnsSearch: ["."] };

/**
 * The files by which programs find addresses. Without /etc/hosts, the image's applies, which usually does not even contain localhost. With
 * an allow-list, brig answers for names. None if the engine does not say where the toolbox is: then it has to make these files itself.
 */
function nameFiles({ directory }: Toolbox, { egress }: SandboxPlan): Mount[] {
  if (directory === null) return [];
  const files = egress === null ? ["hosts"] : ["hosts", "resolv.conf"];
  // No propagation is set: for its own directories the engine accepts only some, and chooses one of them
  // itself.
  return files.map((name) => ({
    Type: "bind",
    Source: `${directory}/${name}`,
    Target: `/etc/${name}`,
    ReadOnly: true,
  }));
}

function plannedMount({ path, access, source = { kind: "host", path } }: PlannedMount): Mount {
  const target = { Target: path, ReadOnly: access === "ro" };
  if (source.kind === "volume") return volumeMount(source.volume, target);
  return { Type: "bind", Source: source.path, ...target, BindOptions: { Propagation: "rprivate" } };
}

/** The engine must copy nothing from the image into the volume, because the volume is already prepared. */
function volumeMount(volume: string, target: Pick<Mount, "Target" | "ReadOnly">): Mount {
  return { Type: "volume", Source: volume, ...target, VolumeOptions: { NoCopy: true } };
}

/** Replaces the engine's /dev/pts, which has no limit but the machine's own number of terminals. */
function terminalsMount({ limits }: SandboxPlan): Mount {
  const o = `nosuid,noexec,newinstance,ptmxmode=0666,mode=0620,gid=5,max=${limits.terminals}`;
  return {
    Type: "volume",
    Target: TERMINALS_PATH,
    ReadOnly: false,
    VolumeOptions: {
      NoCopy: true,
      DriverConfig: { Name: "local", Options: { type: "devpts", device: "devpts", o } },
    },
  };
}

/** Replaces the engine's /dev/shm, which has no limit of files but the machine's memory. */
export function sharedMemory({ limits, user }: SandboxPlan): PlannedTmpfs {
  return {
    path: "/dev/shm",
    sizeBytes: limits.shmBytes,
    maxInodes: limits.shmInodes,
    exec: false,
    mode: "1777",
    ...user,
  };
}

function tmpfsOptions({ sizeBytes, maxInodes, exec, mode, uid, gid }: PlannedTmpfs): string {
  return [
    "rw,nosuid,nodev",
    exec ? "exec" : "noexec",
    `size=${sizeBytes}`,
    `nr_inodes=${maxInodes}`,
    `mode=${mode}`,
    `uid=${uid}`,
    `gid=${gid}`,
  ].join(",");
}

/**
 * Paths hidden from commands: those that Docker hides, and those through which uid 0 can inspect or change
 * the host's kernel without any capability. For example, reading zram-control/hot_add creates a device.
 */
const MASKED_PATHS: readonly string[] = [
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
function readOnlyPaths({ rootfs }: SandboxPlan): string[] {
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

/**
 * Adapts the filter for gVisor. Releases up to 2024 answer EPERM where a filter asks for another errno, but
 * the C library falls back from clone3 only after ENOSYS: no program could start a thread. So gVisor itself
 * answers clone3; a namespace created there is gVisor's own, and mount is still refused in it.
 */
function seccompForGvisor(profile: string): string {
  const filter = JSON.parse(profile) as { syscalls: Rule[] };
  const syscalls = filter.syscalls.map((rule) =>
    rule.names.includes("clone3") ? { names: ["clone3"], action: "SCMP_ACT_ALLOW" } : rule,
  );
  return JSON.stringify({ ...filter, syscalls });
}

interface Rule {
  names: string[];
  action: string;
}
