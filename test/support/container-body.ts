import type { ContainerBody } from "../../src/sandbox/docker/engine-types.js";

/**
 * What `docker run --network none` asks the engine for, without logs. The container has all that Docker gives by default, and stays until
 * it is removed.
 */
export function containerBody(
  image: string,
  [program, ...args]: readonly string[],
  {
    host = {},
    ...changes
  }: Partial<Omit<ContainerBody, "HostConfig">> & {
    host?: Partial<ContainerBody["HostConfig"]>;
  } = {},
): ContainerBody {
  return {
    Image: image,
    Entrypoint: program === undefined ? [] : [program],
    Cmd: args,
    Env: [],
    Labels: {},
    AttachStdin: false,
    AttachStdout: false,
    AttachStderr: false,
    OpenStdin: false,
    Tty: false,
    ...changes,
    HostConfig: {
      AutoRemove: false,
      Privileged: false,
      ReadonlyRootfs: false,
      NetworkMode: "none",
      CgroupnsMode: "private",
      CapDrop: [],
      CapAdd: [],
      SecurityOpt: [],
      Mounts: [],
      Tmpfs: {},
      LogConfig: { Type: "none", Config: {} },
      RestartPolicy: { Name: "no" },
      ...host,
    },
  };
}
