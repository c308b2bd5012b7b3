import type { ContainerBody, Mount } from "../docker/engine-types.js";

export interface VolumeContainer {
  image: string;
  /** A program and its arguments. */
  argv: readonly string[];
  labels: Record<string, string>;
  /** Null for a container that is only made for the files of its image. */
  volume: Mount | null;
}

/** A container for work on one volume. Creating it copies into an empty volume what the image has at that path. */
export function volumeContainer({ image, argv, labels, volume }: VolumeContainer): ContainerBody {
  return {
    Image: image,
    Entrypoint: argv.slice(0, 1),
    Cmd: argv.slice(1),
    Env: [],
    Labels: labels,
    AttachStdin: false,
    AttachStdout: false,
    AttachStderr: false,
    OpenStdin: false,
    Tty: false,
    HostConfig: {
      AutoRemove: false,
      Privileged: false,
      ReadonlyRootfs: true,
      NetworkMode: "none",
      CgroupnsMode: "private",
      CapDrop: ["ALL"],
      CapAdd: [],
      SecurityOpt: ["no-new-privileges"],
      Mounts: volume === null ? [] : [volume],
      Tmpfs: {},
      LogConfig: { Type: "none", Config: {} },
      RestartPolicy: { Name: "no" },
    },
  };
}
