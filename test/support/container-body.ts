import type { Sandbox } from "brigbox";

type ContainerBody = Parameters<Sandbox["engine"]["createContainer"]>[0];

/**
 * What `docker run --network none` would ask the engine for, without logs: nothing is taken away from the container, and it stays
 * until it is removed. Types come from the package, since the bench is compiled apart from the source.
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
