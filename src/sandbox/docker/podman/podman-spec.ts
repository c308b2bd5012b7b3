import { constants } from "node:os";
import { BrigError } from "../../../errors.js";
import type { ContainerBody, Mount } from "../engine-types.js";
import type { PodmanMemory, PodmanMount, PodmanVolume } from "./memory-volumes.js";

/**
 * The fields of Podman's own request for a container that brig uses, under Podman's own names. In Docker's form of the request, nothing
 * keeps Podman from adding writable directories to a container whose files are read-only.
 */
export interface PodmanSpec {
  name: string;
  image: string;
  raw_image_name: string;
  entrypoint: string[];
  command: string[];
  user?: string | undefined;
  groups: string[];
  work_dir?: string | undefined;
  hostname?: string | undefined;
  env: Record<string, string>;
  unsetenv: string[];
  labels: Record<string, string>;
  stdin: boolean;
  terminal: boolean;
  stop_signal?: number | undefined;
  healthconfig?: { Test: string[] } | undefined;
  remove: boolean;
  volatile: boolean;
  restart_policy: string;
  log_configuration: { driver: string };
  systemd: "false";
  init: boolean;
  privileged: boolean;
  read_only_filesystem: boolean;
  read_write_tmpfs: false;
  netns: Namespace;
  pidns: Namespace;
  utsns: Namespace;
  ipcns: Namespace;
  cgroupns: Namespace;
  use_image_hosts: boolean;
  use_image_resolve_conf: boolean;
  base_hosts_file: "none";
  cap_add: string[];
  cap_drop: string[];
  no_new_privileges: boolean;
  /** The path of a file, or the profile itself, which `withSeccompFile` puts into one. */
  seccomp_profile_path?: string | undefined;
  apparmor_profile?: string | undefined;
  mask: string[];
  unmask: string[];
  mounts: PodmanMount[];
  volumes: PodmanVolume[];
  devices: { path: string }[];
  sysctl: Record<string, string>;
  shm_size?: number | undefined;
  oom_score_adj: number;
  resource_limits: object;
  r_limits: { type: string; soft: number; hard: number }[];
}

type Namespace = { nsmode: string };

interface SpecOptions {
  name: string;
  /** In Podman's own request, a short name could mean another image than in Docker's form. */
  imageId: string;
  memory: PodmanMemory;
}

const DEVICES = "/dev";

/** The usual mounts of `/dev`, but read-only, so that nobody inside can replace a device. */
const READ_ONLY_DEVICES: PodmanMount[] = [
  deviceMount(DEVICES, "tmpfs", ["ro", "nosuid", "noexec", "strictatime", "mode=755", "size=65536k"]),
  deviceMount("/dev/mqueue", "mqueue", ["nosuid", "noexec", "nodev"]),
];

function deviceMount(destination: string, type: PodmanMount["type"], options: string[]): PodmanMount {
  return { destination, type, source: type, options };
}

/** Paths that Podman makes read-only of its own accord. Other read-only paths it can only hide: whatever is written to them is lost. */
const READ_ONLY_ANYWAY = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];
const closable = [...READ_ONLY_ANYWAY, DEVICES];

const CPU_PERIOD_MICROSECONDS = 100_000;

/**
 * The same container in Podman's own words. Errors: `policy.not-enforced` for a runtime and a name server, which Podman would
 * ignore.
 */
export function asPodmanSpec(body: ContainerBody, { name, imageId, memory }: SpecOptions): PodmanSpec {
  requireNoRuntime(body);
  requireNoNameServer(body);
  const { HostConfig: host } = body;
  const { volumes, mounts } = sorted(host.Mounts);
  const readOnly = host.ReadonlyPaths ?? [];
  const hasNoNetwork = host.NetworkMode === "none";
  return {
    name,
    image: imageId,
    raw_image_name: body.Image,
    entrypoint: body.Entrypoint,
    command: body.Cmd,
    user: body.User,
    groups: host.GroupAdd ?? [],
    work_dir: body.WorkingDir,
    hostname: body.Hostname,
    env: Object.fromEntries(body.Env.filter(hasValue).map(splitVariable)),
    unsetenv: body.Env.filter((variable) => !hasValue(variable)),
    labels: body.Labels,
    stdin: body.OpenStdin,
    terminal: body.Tty,
    stop_signal: constants.signals[body.StopSignal as NodeJS.Signals],
    healthconfig: body.Healthcheck,
    remove: host.AutoRemove,
    volatile: host.AutoRemove,
    restart_policy: host.RestartPolicy.Name,
    log_configuration: { driver: host.LogConfig.Type },
    systemd: "false",
    init: host.Init ?? false,
    privileged: host.Privileged,
    read_only_filesystem: host.ReadonlyRootfs,
    // Otherwise Podman 5 adds writable directories, of which it is left to chance whether they lie above the volumes in memory.
    read_write_tmpfs: false,
    netns: { nsmode: host.NetworkMode },
    pidns: { nsmode: host.PidMode ?? "private" },
    utsns: { nsmode: host.UTSMode ?? "private" },
    ipcns: { nsmode: host.IpcMode ?? "private" },
    cgroupns: { nsmode: host.CgroupnsMode },
    // Podman would copy the host's names and addresses into its own.
    use_image_hosts: hasNoNetwork,
    use_image_resolve_conf: hasNoNetwork,
    base_hosts_file: "none",
    cap_add: host.CapAdd,
    cap_drop: host.CapDrop,
    no_new_privileges: host.SecurityOpt.includes("no-new-privileges"),
    seccomp_profile_path: securityOption(host.SecurityOpt, "seccomp"),
    apparmor_profile: securityOption(host.SecurityOpt, "apparmor"),
    mask: [...(host.MaskedPaths ?? []), ...readOnly.filter((path) => !closable.includes(path))],
    unmask: host.ReadonlyPaths ? READ_ONLY_ANYWAY.filter((path) => !readOnly.includes(path)) : [],
    mounts: [...(readOnly.includes(DEVICES) ? READ_ONLY_DEVICES : []), ...mounts, ...memory.readOnly],
    volumes: [
      ...volumes,
      ...Object.keys(body.Volumes ?? {}).map((Dest) => ({ Name: "", Dest, Options: [] })),
      ...memory.volumes.map(({ driver, ...volume }) => volume),
    ],
    devices: (host.Devices ?? []).map(({ PathOnHost, PathInContainer, CgroupPermissions }) => ({
      path: `${PathOnHost}:${PathInContainer}:${CgroupPermissions}`,
    })),
    sysctl: host.Sysctls ?? {},
    shm_size: host.ShmSize,
    oom_score_adj: 0,
    resource_limits: resourceLimits(host),
    r_limits: (host.Ulimits ?? []).map(({ Name, Soft, Hard }) => ({ type: Name, soft: Soft, hard: Hard })),
  };
}

function requireNoRuntime({ HostConfig: { Runtime } }: ContainerBody): void {
  if (Runtime === undefined) return;
  throw new BrigError(`Podman's engine cannot run a single container with the runtime ${Runtime}`, {
    code: "policy.not-enforced",
    hint: `leave --runtime out, and start Podman's service with: podman --runtime ${Runtime} system service`,
  });
}

/** Podman writes no /etc/resolv.conf for a container without a network, so this has to be mounted. */
function requireNoNameServer({ HostConfig: { Dns } }: ContainerBody): void {
  if (Dns === undefined) return;
  throw new BrigError(
    "Podman does not say where brig's toolbox is, in which the address of the name server is",
    {
      code: "policy.not-enforced",
      hint: "nothing was run; use another --network than allowlist:…",
    },
  );
}

function sorted(all: readonly Mount[]): { volumes: PodmanVolume[]; mounts: PodmanMount[] } {
  const isVolume = ({ Type, VolumeOptions }: Mount) => Type === "volume" && !VolumeOptions?.DriverConfig;
  return {
    volumes: all.filter(isVolume).map(({ Source = "", Target, ReadOnly, VolumeOptions }) => ({
      Name: Source,
      Dest: Target,
      Options: [ReadOnly ? "ro" : "rw", ...(VolumeOptions?.NoCopy ? ["nocopy"] : [])],
    })),
    mounts: all.filter((mount) => !isVolume(mount)).map((mount) => ownMount(mount) ?? boundMount(mount)),
  };
}

/** The mount of a file system that the kernel makes for this container alone, which Podman needs no volume for. Null for other mounts. */
function ownMount({ Target, VolumeOptions }: Mount): PodmanMount | null {
  const driver = VolumeOptions?.DriverConfig?.Options;
  if (driver === undefined) return null;
  return { destination: Target, type: "devpts", source: driver.device, options: driver.o.split(",") };
}

function boundMount({ Type, Source = "", Target, ReadOnly }: Mount): PodmanMount {
  const options = [ReadOnly ? "ro" : "rw", "rbind", "rprivate"];
  return { destination: Target, type: Type, source: Source, options };
}

function hasValue(variable: string): boolean {
  return variable.includes("=");
}

function splitVariable(variable: string): [string, string] {
  const end = variable.indexOf("=");
  return [variable.slice(0, end), variable.slice(end + 1)];
}

function securityOption(options: readonly string[], name: string): string | undefined {
  return options.find((option) => option.startsWith(`${name}=`))?.slice(name.length + 1);
}

function resourceLimits({ Memory, MemorySwap, NanoCpus, PidsLimit }: ContainerBody["HostConfig"]): object {
  return {
    ...(Memory && { memory: { limit: Memory, ...(MemorySwap && { swap: MemorySwap }) } }),
    ...(NanoCpus && {
      cpu: { period: CPU_PERIOD_MICROSECONDS, quota: Math.round((NanoCpus / 1e9) * CPU_PERIOD_MICROSECONDS) },
    }),
    ...(PidsLimit && { pids: { limit: PidsLimit } }),
  };
}
