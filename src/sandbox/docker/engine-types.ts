import type { Duplex, Readable } from "node:stream";
import type { PulledBytes } from "./calls/pull-bytes.js";

export interface EngineInfo {
  /** "docker" or "podman". */
  product: string;
  version: string;
  /** The API version that brig uses, 1.41 to 1.44 unless the engine requires a newer one. */
  apiVersion: string;
  /** The architecture by Docker's name for it: "amd64", "arm64". */
  arch: string;
  os: string;
  /** The name of its system, e.g. "Debian GNU/Linux 12 (bookworm)"; "Docker Desktop" for that one's virtual machine. */
  operatingSystem: string;
  kernel: string;
  cgroupVersion: "1" | "2";
  cgroupDriver: string;
  runtimes: EngineRuntime[];
  defaultRuntime: string;
  /** Raw, e.g. "name=seccomp,profile=default". */
  securityOptions: string[];
  /** Versions of containerd, runc … May be a distribution's full package version. */
  components: Record<string, string>;
  storageDriver: string;
  dockerRootDir: string;
  cpus: number;
  memoryBytes: number;
  /** Whether containers go on while the engine is restarted. Default: they end. */
  keepsContainers?: boolean;
}

/** An OCI runtime in the engine's configuration. */
export interface EngineRuntime {
  name: string;
  /** The program, or the containerd shim's type; null if the engine does not say. */
  program: string | null;
  /** The program's arguments; null if the engine does not say. */
  args: string[] | null;
}

/** Facts that can change while the engine runs, or that only its diagnosis needs. */
export interface EngineHealth {
  /** The container limits that this engine's kernel can enforce. */
  limits: { memory: boolean; swap: boolean; cpu: boolean; pids: boolean };
  /** How far the engine's clock is ahead of this machine's, in milliseconds, ± the time of one call. */
  clockSkewMs: number;
  authorizationPlugins: string[];
}

export interface ContainerSummary {
  id: string;
  names: string[];
  image: string;
  state: string;
  labels: Record<string, string>;
  createdAt: Date;
}

export interface ContainerState {
  id: string;
  running: boolean;
  paused: boolean;
  exitCode: number;
  oomKilled: boolean;
  error: string;
  pid: number;
  imageId: string;
}

export type StatedPath = { isDirectory: boolean; mode: number; modifiedMs: number };

/** A path whose file differs from the image's. */
export interface ContainerChange {
  path: string;
  kind: "changed" | "added" | "deleted";
}

export interface VolumeSummary {
  name: string;
  labels: Record<string, string>;
  mountpoint: string;
  /** Null if the engine does not say. */
  createdAt: Date | null;
}

export interface ImageSummary {
  id: string;
  tags: string[];
  sizeBytes: number;
  createdAt: Date;
  /** The last time at which it got a name, or the same name again; null if the engine does not say. */
  lastTaggedAt: Date | null;
  labels: Record<string, string>;
  arch: string;
  /** One `NAME=value` each. */
  env: string[];
  /** Paths of the image's VOLUMEs. */
  volumes: string[];
  /** `user[:group]`, names or numbers; empty for root. */
  user: string;
  /** Empty for `/`. */
  workingDir: string;
}

/** One step in which an image was made. */
export interface ImageLayer {
  /** The time in seconds since 1970. */
  createdAt: number;
  createdBy: string;
  bytes: number;
}

/** The settings of a created container, after the engine has added those of its image. */
export interface CreatedContainer {
  imageId: string;
  entrypoint: string[];
  cmd: string[];
  user: string;
  workingDir: string;
  env: string[];
  labels: Record<string, string>;
  stopSignal: string;
  healthcheck: string[];
}

/** The disk space that images and volumes use. Null for a number that the engine has not counted. */
export interface DiskUsage {
  images: StoredObject<{ id: string; tags: string[] }>[];
  volumes: StoredObject<{ name: string }>[];
}

type StoredObject<Name> = Name & {
  labels: Record<string, string>;
  /** The size without data that it shares with others. */
  ownBytes: number;
  /** The number of containers that use it, stopped ones included. */
  containers: number | null;
};

/**
 * A raw connection, taken over from HTTP. Its readable side is in the engine's multiplexed format with 8-byte
 * headers. The bytes of a data event may be overwritten after the event, so copy them to keep them.
 */
export interface EngineStream {
  readonly stream: Duplex;
}

/** The streams of one exec. */
export interface ExecStream extends EngineStream {
  readonly id: string;
  inspect(): Promise<{ running: boolean; exitCode: number | null }>;
}

/** A connection to a container engine. */
export interface EngineConnection {
  /** E.g. `unix:///var/run/docker.sock`. */
  readonly endpoint: string;
}

/**
 * The container engine. Everything that brig asks of it goes through this interface. All errors are
 * BrigErrors: `engine.unreachable` if it does not answer, `image.missing` for an unknown image, else
 * `engine.failed` with the engine's own message.
 */
export interface Engine extends EngineConnection {
  /** The same as in `info`, but available at once: "amd64" or "arm64". */
  readonly arch: string;
  /** The engine is asked once. */
  info(): Promise<EngineInfo>;
  /** The engine is asked each time. */
  health(): Promise<EngineHealth>;

  createContainer(body: ContainerBody, options?: { name?: string }): Promise<string>;
  startContainer(id: string): Promise<void>;
  /** Resolves with the exit code when the container is not running (any more). */
  waitContainer(id: string, options?: { signal?: AbortSignal }): Promise<number>;
  /** Succeeds also if it is not running or gone already. */
  killContainer(id: string, signal?: string): Promise<void>;
  /** Freezes its processes, which keep their memory. */
  pauseContainer(id: string): Promise<void>;
  /** Succeeds also if it is gone already. */
  unpauseContainer(id: string): Promise<void>;
  /** Removes it by force, with its anonymous volumes. Resolves when it is gone, even if others remove it. */
  removeContainer(id: string, options?: { signal?: AbortSignal }): Promise<void>;
  /** Resolves when it is gone, or if it already was. */
  waitRemoved(id: string, options?: { signal?: AbortSignal }): Promise<void>;
  /** Null if there is no such container. */
  inspectContainer(id: string, options?: { signal?: AbortSignal }): Promise<ContainerState | null>;
  inspectCreated(id: string): Promise<CreatedContainer>;
  /** The size of all files that a container has made or changed, sparse ones in full. Null if the engine does not say. */
  writtenBytes(id: string, options?: { signal?: AbortSignal }): Promise<number | null>;
  /** Lists containers, stopped ones too, that have all these labels ("name" or "name=value"). */
  listContainers(labels: string[]): Promise<ContainerSummary[]>;
  /** Copies an uncompressed tar stream into a container, whether it runs or not. */
  putArchive(id: string, path: string, tar: Readable): Promise<void>;
  /**
   * An uncompressed tar stream of a file or directory in a container, whether it runs or not. Nothing in the
   * container is run for it. A link at the end of the path is not followed. Null if there is no such path. The
   * stream must be read to its end or destroyed. Error: `engine.failed` if there is no such container.
   */
  readArchive(id: string, path: string, options?: { signal?: AbortSignal }): Promise<Readable | null>;
  /**
   * The engine's description of one path in a container, without reading it: `mode` has the permission bits, setuid, setgid
   * and sticky. A link at its end is not followed. Null if there is no such path, or if the engine does not say. Error:
   * `engine.failed` if there is no such container.
   */
  statPath(id: string, path: string, options?: { signal?: AbortSignal }): Promise<StatedPath | null>;
  /** The events of a container that the engine has seen since its own start. */
  containerEvents(id: string, options?: { signal?: AbortSignal }): Promise<ContainerEvent[]>;
  /** The differences from the image, except in volumes and in memory. */
  containerChanges(id: string, options?: { signal?: AbortSignal }): Promise<ContainerChange[]>;
  /** The standard streams of the container's main program. Nothing is lost if attached before the start. */
  attachContainer(id: string): Promise<EngineStream>;
  /**
   * Starts `argv` in a running container with stdin, stdout and stderr on one stream. `end()` closes only
   * stdin. Error: `sandbox.gone` if the container is not running. The caller must listen for errors of the
   * stream.
   */
  openExec(id: string, argv: string[], options?: { user?: string }): Promise<ExecStream>;

  /** `options` are those of the engine's local driver, as for `mount`: `type`, `device` and `o`. */
  createVolume(
    name: string,
    labels: Record<string, string>,
    options?: Record<string, string>,
  ): Promise<VolumeSummary>;
  inspectVolume(name: string): Promise<VolumeSummary | null>;
  listVolumes(labels: string[]): Promise<VolumeSummary[]>;
  removeVolume(name: string): Promise<void>;

  inspectImage(ref: string): Promise<ImageSummary | null>;
  listImages(labels: string[]): Promise<ImageSummary[]>;
  /** The newest layer first. */
  imageHistory(ref: string): Promise<ImageLayer[]>;
  buildImage(context: Readable, options: BuildOptions): Promise<void>;
  importImage(tar: Readable, tag: string): Promise<void>;
  pullImage(ref: string, options?: { onProgress?: PullProgress; signal?: AbortSignal }): Promise<void>;
  tagImage(ref: string, tag: string): Promise<void>;
  /** Removes only this name if there are others. The engine refuses for an image in use. */
  removeImage(ref: string): Promise<void>;

  diskUsage(): Promise<DiskUsage>;
}

/** Called with each line of the engine's progress, and with how far the pull is if the line is about one of its layers. */
export type PullProgress = (line: string, pulled?: PulledBytes) => void;

/** An entry of the engine's own log of events about one container. */
export interface ContainerEvent {
  /** "create", "start", "kill" by somebody outside, "oom" of any process, "die", "destroy" … */
  action: string;
  atMs: number;
  /** The exit code of the main process. Only "die" has one; null if the engine does not say. */
  exitCode: number | null;
}

/** Settings for building an image. */
export interface BuildOptions {
  tag: string;
  dockerfile?: string;
  buildArgs?: Record<string, string>;
  /** The stage that is the result. Default: the last one. */
  target?: string | undefined;
  labels?: Record<string, string>;
  /** Whether BuildKit builds it. Podman has one builder, and takes no notice. Default: the classic builder. */
  usesBuildKit?: boolean;
  /** Whether its commands have a network. Default: true. */
  hasNetwork?: boolean;
  /** Called with each line of the engine's progress. */
  onProgress?: (line: string) => void;
  signal?: AbortSignal;
}

/** The fields of the API's request to create a container that brig uses, under the API's own names. */
export interface ContainerBody {
  Image: string;
  Entrypoint: string[];
  Cmd: string[];
  User?: string;
  WorkingDir?: string;
  Hostname?: string;
  Env: string[];
  Labels: Record<string, string>;
  AttachStdin: boolean;
  AttachStdout: boolean;
  AttachStderr: boolean;
  OpenStdin: boolean;
  /** Standard input ends when the attached client disconnects. */
  StdinOnce?: boolean;
  Tty: boolean;
  StopSignal?: string;
  Healthcheck?: { Test: string[] };
  /** The engine sets up no network. The runtime creates an empty one with a loopback interface. */
  NetworkDisabled?: boolean;
  /** Paths at which the engine mounts a new volume each. */
  Volumes?: Record<string, object>;
  HostConfig: HostConfig;
}

interface HostConfig {
  AutoRemove: boolean;
  Privileged: boolean;
  ReadonlyRootfs: boolean;
  NetworkMode: string;
  IpcMode?: string;
  CgroupnsMode: "private" | "host";
  CapDrop: string[];
  CapAdd: string[];
  SecurityOpt: string[];
  Mounts: Mount[];
  Tmpfs: Record<string, string>;
  LogConfig: { Type: string; Config: Record<string, string> };
  RestartPolicy: { Name: "no" };
  Runtime?: string;
  Init?: boolean;
  ShmSize?: number;
  Memory?: number;
  MemorySwap?: number;
  NanoCpus?: number;
  PidsLimit?: number;
  Dns?: string[];
  DnsSearch?: string[];
  Sysctls?: Record<string, string>;
  MaskedPaths?: string[];
  ReadonlyPaths?: string[];
  Ulimits?: { Name: string; Soft: number; Hard: number }[];
  GroupAdd?: string[];
  PidMode?: "host";
  UTSMode?: "host";
  DeviceRequests?: {
    Driver: string;
    Count: number;
    DeviceIDs: null;
    Capabilities: string[][];
    Options: Record<string, string>;
  }[];
  Devices?: { PathOnHost: string; PathInContainer: string; CgroupPermissions: string }[];
}

export interface Mount {
  Type: "bind" | "volume" | "tmpfs";
  Source?: string;
  Target: string;
  ReadOnly: boolean;
  BindOptions?: { Propagation?: "rprivate" };
  VolumeOptions?: {
    NoCopy?: boolean;
    Labels?: Record<string, string>;
    /** If the mount has no source, the engine makes a volume for this container alone and removes it with the container. */
    DriverConfig?: { Name: "local"; Options: { type: string; device: string; o: string } };
  };
}
