import { BrigError } from "../../errors.js";
import type { ContainerBody } from "../engine-types.js";

/** Podman makes these writable in a container whose other files are read-only. */
const openedByPodman = ["/run", "/tmp", "/var/tmp", "/dev/shm"];

const closed = "ro,nosuid,nodev,noexec,size=65536,nr_inodes=16,mode=755";

/**
 * The body with hidden paths where Podman looks for them, and without the writable directories that it would add. Errors:
 * `policy.not-enforced` for a runtime and a name server, which Podman would ignore, and for a path that it would misread.
 */
export function asPodmanTakesIt(body: ContainerBody): ContainerBody {
  requireNoRuntime(body);
  requirePlainPaths(body);
  requireNoNameServer(body);
  const { Mounts, MaskedPaths, SecurityOpt, ReadonlyRootfs, Tmpfs } = body.HostConfig;
  const added = ReadonlyRootfs ? openedByPodman.filter((path) => !(path in Tmpfs)) : [];
  return {
    ...body,
    HostConfig: {
      ...body.HostConfig,
      // With any such options Podman 4.3 leaves out what is mounted below; "rprivate" is its default.
      Mounts: Mounts.map(({ BindOptions, ...mount }) => mount),
      SecurityOpt: [...SecurityOpt, ...(MaskedPaths ? [`mask=${MaskedPaths.join(":")}`] : [])],
      Tmpfs: { ...Object.fromEntries(added.map((path) => [path, closed])), ...Tmpfs },
    },
  };
}

function requireNoRuntime({ HostConfig: { Runtime } }: ContainerBody): void {
  if (Runtime === undefined) return;
  throw new BrigError(`Podman's engine cannot run a single container with the runtime ${Runtime}`, {
    code: "policy.not-enforced",
    hint: `leave --runtime out, and start Podman's service with: podman --runtime ${Runtime} system service`,
  });
}

/** Podman writes each mount as a line of comma-separated options and reads it again: a path could add options. */
function requirePlainPaths({ HostConfig: { Mounts } }: ContainerBody): void {
  const odd = Mounts.flatMap(({ Source = "", Target }) => [Source, Target]).find((path) =>
    /[,"\r\n]/.test(path),
  );
  if (odd === undefined) return;
  throw new BrigError(`Podman cannot mount ${JSON.stringify(odd)}`, {
    code: "policy.not-enforced",
    hint: "use a path without commas, double quotes and line breaks",
  });
}

/** Podman 4.3 gives a container without a network the host's name servers, and its /etc/hosts with the names and addresses in it. */
function requireNoNameServer({ HostConfig: { Dns } }: ContainerBody): void {
  if (Dns === undefined) return;
  throw new BrigError("Podman cannot give a sandbox with a list of allowed hosts brig's name server", {
    code: "policy.not-enforced",
    hint: "nothing was run; use Docker for --network allowlist:…, or another --network",
  });
}
