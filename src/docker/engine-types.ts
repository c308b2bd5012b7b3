import type { Duplex, Readable } from "node:stream";

/** The part of the Engine API's container create body that brig uses. Field names are the API's own. */
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
  /** Standard input ends with the client that is attached. */
  StdinOnce?: boolean;
  Tty: boolean;
  StopSignal?: string;
  Healthcheck?: { Test: string[] };
  /** The engine takes no part in the container's network: the runtime makes it an empty one with a loopback interface. */
  NetworkDisabled?: boolean;
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
  Sysctls?: Record<string, string>;
  MaskedPaths?: string[];
  ReadonlyPaths?: string[];
  Ulimits?: { Name: string; Soft: number; Hard: number }[];
  OomScoreAdj?: number;
}

export interface Mount {
  Type: "bind" | "volume" | "tmpfs";
  Source?: string;
  Target: string;
  ReadOnly: boolean;
  BindOptions?: { Propagation?: "rprivate"; CreateMountpoint?: boolean };
  VolumeOptions?: { NoCopy?: boolean };
}

export interface EngineInfo {
  /** "docker" or "podman". */
  product: string;
  version: string;
  /** The version of the API that brig speaks with it, 1.41 to 1.44 unless the engine insists on a newer one. */
  apiVersion: string;
  /** As Docker names it: "amd64", "arm64". */
  arch: string;
  os: string;
  kernel: string;
  cgroupVersion: "1" | "2";
  cgroupDriver: string;
  runtimes: EngineRuntime[];
  defaultRuntime: string;
  /** Raw, e.g. "name=seccomp,profile=default". */
  securityOptions: string[];
  /** Component versions as the engine reports them, a distribution's full package version where it says it: containerd, runc … */
  components: Record<string, string>;
  storageDriver: string;
  dockerRootDir: string;
  cpus: number;
  memoryBytes: number;
}

/** An OCI runtime as the engine is configured with it. */
export interface EngineRuntime {
  /** As the administrator chose it. */
  name: string;
  /** The program, or the containerd shim's type; null where the engine does not say. */
  program: string | null;
  /** What the program is started with; null where the engine does not say. */
  args: string[] | null;
}

/** What can change while an engine runs, or concerns only its diagnosis. */
export interface EngineHealth {
  /** The limits of a container that this engine's kernel can enforce. */
  limits: { memory: boolean; swap: boolean; cpu: boolean; pids: boolean };
  /** How far the engine's clock is ahead of this machine's, in milliseconds; off by the time one call takes. */
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

export interface VolumeSummary {
  name: string;
  labels: Record<string, string>;
  mountpoint: string;
}

export interface ImageSummary {
  id: string;
  tags: string[];
  sizeBytes: number;
  createdAt: Date;
  labels: Record<string, string>;
  arch: string;
  /** As the image has it, one `NAME=value` each. */
  env: string[];
  /** Paths of the image's VOLUMEs. */
  volumes: string[];
}

/** What a container was created with once the engine has mixed the image's own settings in. */
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

/** What takes up room on the engine's disk. Null for a number that the engine has not counted. */
export interface DiskUsage {
  images: StoredObject<{ id: string; tags: string[] }>[];
  volumes: StoredObject<{ name: string }>[];
}

type StoredObject<Name> = Name & {
  labels: Record<string, string>;
  /** Without what it shares with others. */
  ownBytes: number;
  /** How many containers use it, stopped ones included. */
  containers: number | null;
};

/**
 * A hijacked connection: raw duplex, its readable side in the engine's 8-byte-header multiplexing (not demultiplexed).
 * The bytes of a data event may be overwritten after it: who keeps them copies them.
 */
export interface EngineStream {
  readonly stream: Duplex;
}

/** The streams of one exec. */
export interface ExecStream extends EngineStream {
  readonly id: string;
  inspect(): Promise<{ running: boolean; exitCode: number | null }>;
}

export interface BuildOptions {
  tag: string;
  dockerfile?: string;
  buildArgs?: Record<string, string>;
  labels?: Record<string, string>;
  target?: string;
  /** One line of the engine's own progress. */
  onProgress?: (line: string) => void;
  signal?: AbortSignal;
}

/**
 * The container engine, and the only door to it. Every failure is a BrigError: `engine.unreachable` when nothing
 * answers, `image.missing` for an unknown image, `engine.failed` with the engine's own words otherwise.
 */
export interface Engine {
  /** E.g. `unix:///var/run/docker.sock`. */
  readonly endpoint: string;
  /** As `info` has it, and known without asking: "amd64" or "arm64". */
  readonly arch: string;
  /** Asked once, then remembered. */
  info(): Promise<EngineInfo>;
  /** Asked each time. */
  health(): Promise<EngineHealth>;

  createContainer(body: ContainerBody, options?: { name?: string; signal?: AbortSignal }): Promise<string>;
  startContainer(id: string): Promise<void>;
  /** Resolves when the container does not run (any more), with its exit code. */
  waitContainer(id: string, options?: { signal?: AbortSignal }): Promise<number>;
  /** Already dead or gone is success. */
  killContainer(id: string, signal?: string): Promise<void>;
  /** Gone is success. */
  unpauseContainer(id: string): Promise<void>;
  /** With force and anonymous volumes. Resolves when it is gone, whoever removed it, and was so before too. */
  removeContainer(id: string, options?: { signal?: AbortSignal }): Promise<void>;
  /** Resolves when it is gone, whoever removes it; it may have been so before. */
  waitRemoved(id: string, options?: { signal?: AbortSignal }): Promise<void>;
  /** Null when there is no such container. */
  inspectContainer(id: string, options?: { signal?: AbortSignal }): Promise<ContainerState | null>;
  /** What will be started. */
  inspectCreated(id: string): Promise<CreatedContainer>;
  /** Only containers that carry every one of these labels ("name" or "name=value"), stopped ones too. */
  listContainers(labels: string[]): Promise<ContainerSummary[]>;
  /** Uncompressed tar into a created, not yet started container. */
  putArchive(id: string, path: string, tar: Readable): Promise<void>;
  /**
   * The standard streams of the container's own program, as `openExec` has those of another. Before the start nothing of
   * them is missed.
   */
  attachContainer(id: string): Promise<EngineStream>;
  /**
   * Starts `argv` in a running container with stdin, stdout and stderr on one stream. `end()` closes only stdin. A
   * container that is gone or stopped is `sandbox.gone`. The caller listens for the stream's errors.
   */
  openExec(id: string, argv: string[], options?: { user?: string }): Promise<ExecStream>;

  createVolume(
    name: string,
    labels: Record<string, string>,
    options?: { driverOptions?: Record<string, string> },
  ): Promise<void>;
  inspectVolume(name: string): Promise<VolumeSummary | null>;
  listVolumes(labels: string[]): Promise<VolumeSummary[]>;
  removeVolume(name: string): Promise<void>;

  inspectImage(ref: string): Promise<ImageSummary | null>;
  listImages(labels: string[]): Promise<ImageSummary[]>;
  buildImage(context: Readable, options: BuildOptions): Promise<void>;
  importImage(tar: Readable, tag: string): Promise<void>;
  pullImage(
    ref: string,
    options?: { onProgress?: (line: string) => void; signal?: AbortSignal },
  ): Promise<void>;
  tagImage(ref: string, tag: string): Promise<void>;
  /** By a name only that goes, unless it is the last. What a container uses or another image is built on is refused. */
  removeImage(ref: string): Promise<void>;

  diskUsage(): Promise<DiskUsage>;
}
