import type { ContainerBody, Engine } from "../../src/docker/engine-types.js";
import { loadPolicy } from "../../src/policy/load-policy.js";
import { planSandbox } from "../../src/sandbox/plan/plan-sandbox.js";
import { startRawContainer } from "../support/raw-container.js";
import { temporaryDirectory } from "../support/sandbox.js";
import type { HostTargets } from "./host-targets.js";
import { LEAVE_THINGS, thingsLeft } from "./left-behind.js";

/** A container without any protection, in which the same attempts succeed. */
export interface WeakTwin extends AsyncDisposable {
  /** On the host, and at the same path inside. */
  readonly workspace: string;
  /** The outcome of each attempt, by its name. */
  run(user: string): Promise<Record<string, string>>;
  /** What root could leave in the workspace. */
  leaveThings(): Promise<string[]>;
}

export async function weakTwin(engine: Engine, targets: HostTargets): Promise<WeakTwin> {
  const directory = await temporaryDirectory();
  const plan = await planSandbox({
    policy: await loadPolicy("danger-full-access"),
    workspace: directory.path,
    image: "brig/base",
    addDirs: [],
    writableRoots: [],
    env: {},
    hostUser: { uid: 0, gid: 0 },
    leaseSeconds: 60,
    keep: false,
    sessionId: "weak-twin",
    labels: {},
    engine: await engine.info(),
    endpoint: engine.endpoint,
    host: { homeDirectory: null },
  });
  const container = await startRawContainer(engine, plan, (body) => weaken(body, { engine, targets }));
  const { exitCode, output } = await container.exec(["sh", "-ec", OPENING, directory.path]);
  if (exitCode !== 0) throw new Error(`the weak twin could not be prepared: ${output}`);
  const firstProcess = (await engine.inspectContainer(container.id))?.pid;
  const run = async (user: string) => {
    const argv = targets.probes({ workspace: directory.path, writable: [], firstProcess, mayLeave: false });
    const { output, exitCode } = await container.exec(argv, user);
    if (exitCode !== 0) throw new Error(`the probes failed: ${output}`);
    return JSON.parse(output) as Record<string, string>;
  };
  return {
    workspace: directory.path,
    run,
    leaveThings: async () => {
      await container.exec(["sh", "-c", `cd "$0"\n${LEAVE_THINGS}`, directory.path]);
      return await thingsLeft(directory.path, 0);
    },
    async [Symbol.asyncDispose]() {
      await container[Symbol.asyncDispose]();
      await directory[Symbol.asyncDispose]();
    },
  };
}

/** What an engine gives to privileged containers alone, which may not start where the engine itself is in a container. */
const OPENING = `
chmod 755 "$0"
cp /usr/bin/id "$0/setuid-id"
chmod 4755 "$0/setuid-id"
mount --make-shared /tmp
while read -r _ place kind _; do
  case $kind in sysfs | cgroup | cgroup2) mount -o remount,bind,rw "$place" ;; esac
done </proc/mounts
`;

/** Each line takes one protection away. */
function weaken(body: ContainerBody, { engine, targets }: { engine: Engine; targets: HostTargets }): void {
  const socket = new URL(engine.endpoint).pathname;
  const bind = (Source: string, Target: string) =>
    ({ Type: "bind", Source, Target, ReadOnly: false }) as const;
  Object.assign(body, { Entrypoint: ["sleep"], Cmd: ["600"], NetworkDisabled: false });
  delete body.Hostname;
  Object.assign(body.HostConfig, {
    PidMode: "host",
    UTSMode: "host",
    NetworkMode: "host",
    ReadonlyRootfs: false,
    SecurityOpt: ["seccomp=unconfined", "apparmor=unconfined"],
    CapDrop: [],
    CapAdd: ["SYS_ADMIN", "SYS_RAWIO", "SYSLOG", "NET_ADMIN", "MKNOD"],
    Devices: [{ PathOnHost: "/dev/kmsg", PathInContainer: "/dev/kmsg", CgroupPermissions: "r" }],
    MaskedPaths: [],
    ReadonlyPaths: [],
    Sysctls: {},
    Memory: 0,
    MemorySwap: 0,
    Tmpfs: { "/tmp": "rw,exec" },
    Mounts: [...body.HostConfig.Mounts, bind(socket, socket), bind(targets.directory, targets.directory)],
  });
}
