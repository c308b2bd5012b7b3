import type { ContainerBody, Mount } from "../../docker/engine-types.js";
import type { Toolbox } from "../../images/toolbox-volume.js";
import { seccompForGvisor } from "../../policy/gvisor-seccomp.js";
import type { PlannedMount, PlannedTmpfs, SandboxPlan } from "./plan.js";
import { MASKED_PATHS, readOnlyPaths } from "./system-paths.js";

export interface ContainerSecrets {
  /** With the runner and rg. */
  toolbox: Toolbox;
  /** SHA-256 of the session's token in hex: the token itself never enters the container's description. */
  tokenHash: string;
  /** The text of the plan's filter in sandbox-policies; unused where it keeps the engine's. */
  seccompJson: string;
}

export const TOOLBOX_PATH = "/.brig";

/** GVisor's cgroup files are a set of its own, writable for root, whose limits would reach the runner: nobody needs them. */
const GVISOR_MASKS = { "/sys/fs/cgroup": "ro,nosuid,nodev,noexec,size=65536,mode=555" };

/** GVisor cannot load the one that is executable but not readable. */
export function runnerPath({ kernel }: Pick<SandboxPlan, "kernel">): string {
  return `${TOOLBOX_PATH}/${kernel === "gvisor" ? "runner-gvisor" : "runner"}`;
}

/** The runtime makes the directories below, and makes it read-only last. */
const PARENT_OPTIONS = "ro,nosuid,nodev,noexec,size=65536,nr_inodes=1024,mode=755";
export const CONTAINER_HOSTNAME = "brig";

/** Root that works in a directory of the host's can leave devices and programs with capabilities there. */
const DROPPED_CAPABILITIES: Record<SandboxPlan["capabilities"], string[]> = {
  none: ["ALL"],
  "full-access": ["MKNOD", "SETFCAP"],
  "engine-default": [],
};

/** What is sent to the engine for a plan. Pure: the same plan gives the same body. */
export function createContainerBody(plan: SandboxPlan, secrets: ContainerSecrets): ContainerBody {
  const { toolbox } = secrets;
  const hosts = plan.network === "none" ? hostsMount(toolbox) : [];
  return {
    Image: plan.image,
    Entrypoint: [runnerPath(plan)],
    Cmd: [
      ...["serve", "--token-hash", secrets.tokenHash, "--lease", String(plan.leaseSeconds)],
      ...["--first-stream", "stdio"],
    ],
    User: `${plan.user.uid}:${plan.user.gid}`,
    // The workspace as working directory would make the engine create it in the image; the runner sets it per command.
    WorkingDir: "/",
    Hostname: CONTAINER_HOSTNAME,
    Env: environment(plan),
    Labels: { ...blank(plan.overridden.labels), ...plan.labels },
    // The runtime alone makes the same empty network in half the time of a start. Only /etc/hosts is the engine's, then.
    ...(hosts.length > 0 && { NetworkDisabled: true }),
    // What an image names here runs beside every supervisor, and in a container that is about to be refused too.
    Healthcheck: { Test: ["NONE"] },
    // The host's first stream is the runner's own; it ends with the host that has attached to it.
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
    OpenStdin: true,
    StdinOnce: true,
    Tty: false,
    // PID 1 ignores SIGTERM, and an engine that is stopped would wait ten seconds for it.
    StopSignal: "SIGKILL",
    HostConfig: {
      AutoRemove: true,
      Privileged: false,
      ReadonlyRootfs: plan.rootfs === "ro",
      NetworkMode: plan.network,
      IpcMode: "private",
      // By name: on cgroup v1 the engine's default is the host's namespace.
      CgroupnsMode: "private",
      CapDrop: DROPPED_CAPABILITIES[plan.capabilities],
      CapAdd: [],
      SecurityOpt: securityOptions(plan, secrets.seccompJson),
      Mounts: [toolboxMount(toolbox), ...hosts, ...plan.mounts.map(bindMount)],
      Tmpfs: {
        ...Object.fromEntries(
          [...plan.tmpfs, sharedMemory(plan)].map((one) => [one.path, tmpfsOptions(one)]),
        ),
        ...Object.fromEntries(plan.parents.map((path) => [path, PARENT_OPTIONS])),
        ...(plan.kernel === "gvisor" && GVISOR_MASKS),
      },
      // A log on disk could be filled, and forged through /proc/1/fd/1.
      LogConfig: { Type: "none", Config: {} },
      RestartPolicy: { Name: "no" },
      ...(plan.runtime === null ? {} : { Runtime: plan.runtime }),
      Init: false,
      MaskedPaths: [...MASKED_PATHS],
      ReadonlyPaths: readOnlyPaths(plan),
      Sysctls: { ...plan.limits.ipc },
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

/** A name without a value is one that the engine leaves out, whatever the image says. */
function environment({ containerEnvironment, overridden }: SandboxPlan): string[] {
  const foreign = overridden.environment.filter((name) => !(name in containerEnvironment));
  return [...Object.entries(containerEnvironment).map(([name, value]) => `${name}=${value}`), ...foreign];
}

/** A label of the image's cannot be taken away, but other programs of the host act on what it says. */
function blank(names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, ""]));
}

function securityOptions(plan: SandboxPlan, seccompJson: string): string[] {
  return [
    ...(plan.noNewPrivileges ? ["no-new-privileges"] : []),
    ...(plan.seccomp !== "engine-default" ? [`seccomp=${filterFor(plan, seccompJson)}`] : []),
  ];
}

function filterFor({ kernel }: SandboxPlan, seccompJson: string): string {
  return kernel === "gvisor" ? seccompForGvisor(seccompJson) : seccompJson;
}

function toolboxMount(toolbox: Toolbox): Mount {
  return {
    Type: "volume",
    Source: toolbox.volume,
    Target: TOOLBOX_PATH,
    ReadOnly: true,
    VolumeOptions: { NoCopy: true },
  };
}

/** Without it, names such as localhost would be what the image says, which mostly is nothing. */
function hostsMount({ directory }: Toolbox): Mount[] {
  if (directory === null) return [];
  // The engine chooses the propagation: in its own directories it takes one only that tells it to let go of them.
  return [{ Type: "bind", Source: `${directory}/hosts`, Target: "/etc/hosts", ReadOnly: true }];
}

function bindMount(mount: PlannedMount): Mount {
  return {
    Type: "bind",
    Source: mount.path,
    Target: mount.path,
    ReadOnly: mount.access === "ro",
    BindOptions: { Propagation: "rprivate" },
  };
}

/** In place of the engine's own, which takes as many files as the machine has memory for. */
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
