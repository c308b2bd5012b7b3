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
