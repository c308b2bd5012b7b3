import type { EngineInfo } from "../../../../src/sandbox/docker/engine-types.js";
import type { SandboxPlan } from "../../../../src/sandbox/plan/plan.js";
import { planSandbox, type SandboxRequest } from "../../../../src/sandbox/plan/plan-sandbox.js";
import { loadPolicy } from "../../../../src/sandbox/policy/load-policy.js";
import type { NetworkScope } from "../../../../src/sandbox/policy/network.js";

export const engine: EngineInfo = {
  product: "docker",
  version: "20.10.24",
  apiVersion: "1.41",
  arch: "amd64",
  os: "linux",
  operatingSystem: "Debian GNU/Linux 12 (bookworm)",
  kernel: "6.1.0-test",
  cgroupVersion: "1",
  cgroupDriver: "cgroupfs",
  runtimes: [{ name: "runc", program: "runc", args: [] }],
  defaultRuntime: "runc",
  securityOptions: ["name=seccomp,profile=default"],
  components: {},
  storageDriver: "overlay2",
  dockerRootDir: "/var/lib/docker",
  cpus: 8,
  memoryBytes: 32 * 1024 ** 3,
};

export interface Wanted extends Partial<Omit<SandboxRequest, "policy">> {
  mode?: string;
  network?: NetworkScope;
}

/** A request for an ordinary machine and user, in workspace-write unless `wanted` says otherwise. */
export async function requestFor(workspace: string | null, wanted: Wanted = {}): Promise<SandboxRequest> {
  const { mode = "workspace-write", network, ...rest } = wanted;
  const loaded = await loadPolicy(mode);
  return {
    policy: network === undefined ? loaded : { ...loaded, policy: { ...loaded.policy, network } },
    workspace,
    image: "brig/base",
    addDirs: [],
    writableRoots: [],
    env: {},
    hostUser: { uid: 1000, gid: 1000 },
    leaseSeconds: 60,
    keep: false,
    sessionId: "5f1c0e0a",
    labels: { "brig.session": "5f1c0e0a" },
    engine,
    endpoint: "unix:///var/run/docker.sock",
    host: { homeDirectory: "/home/alice" },
    ...rest,
  };
}

export async function planFor(workspace: string | null, wanted: Wanted = {}): Promise<SandboxPlan> {
  return await planSandbox(await requestFor(workspace, wanted));
}

/** The plan with what differs from machine to machine replaced, so that it can be compared with a golden file. */
export function anywhere<T>(value: T, workspace: string): T {
  return JSON.parse(JSON.stringify(value).replaceAll(workspace, "/repo")) as T;
}
