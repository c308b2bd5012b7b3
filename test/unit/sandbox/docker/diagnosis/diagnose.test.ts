import { release } from "node:os";
import { describe, expect, it } from "vitest";
import { diagnose } from "../../../../../src/sandbox/docker/diagnosis/diagnose.js";
import { readMeminfo } from "../../../../../src/sandbox/docker/disk/this-machine.js";
import type { EngineHealth, EngineInfo } from "../../../../../src/sandbox/docker/engine-types.js";

const info: EngineInfo = {
  product: "docker",
  version: "29.5.1",
  apiVersion: "1.44",
  arch: "amd64",
  os: "linux",
  operatingSystem: "Debian GNU/Linux 13 (trixie)",
  kernel: "6.12.0",
  cgroupVersion: "2",
  cgroupDriver: "systemd",
  runtimes: [
    { name: "io.containerd.runc.v2", program: "runc", args: [] },
    { name: "runc", program: "runc", args: [] },
  ],
  defaultRuntime: "runc",
  securityOptions: ["name=apparmor", "name=seccomp,profile=builtin", "name=rootless", "name=cgroupns"],
  components: { Engine: "29.5.1", containerd: "2.1.0", runc: "1.3.3" },
  storageDriver: "overlay2",
  dockerRootDir: "/",
  cpus: 2,
  memoryBytes: 8e9,
};
const health: EngineHealth = {
  limits: { memory: true, swap: true, cpu: true, pids: true },
  clockSkewMs: 12,
  authorizationPlugins: [],
};

interface Changes {
  info?: Partial<EngineInfo>;
  health?: Partial<EngineHealth>;
}

async function checkOf(id: string, changes: Changes = {}) {
  const checks = await diagnose({
    endpoint: "tcp://engine.example",
    info: async () => ({ ...info, ...changes.info }),
    health: async () => ({ ...health, ...changes.health }),
  });
  return checks.find((one) => one.id === id);
}

const statusOf = async (id: string, changes: Changes) => (await checkOf(id, changes))?.status;

describe("diagnose", () => {
  it("has nothing to say about a current rootless engine", async () => {
    const checks = await diagnose({
      endpoint: "tcp://far.example",
      info: async () => info,
      health: async () => health,
    });
    expect(checks.filter(({ status }) => status !== "ok")).toEqual([]);
    expect(new Set(checks.map(({ id }) => id)).size).toBe(checks.length);
  });

  it("gives advice with every check that is not ok, and only then", async () => {
    const old = {
      ...info,
      version: "20.10.0",
      cgroupVersion: "1" as const,
      securityOptions: [],
      storageDriver: "vfs",
    };
    const checks = await diagnose({
      endpoint: "unix:///x",
      info: async () => old,
      health: async () => health,
    });
    expect(checks.some(({ status }) => status === "fail")).toBe(true);
    for (const { status, advice } of checks) expect(advice === null).toBe(status === "ok");
  });

  it("fails an engine that cannot limit memory, processes or CPU time, and only warns if it cannot count swap", async () => {
    const without = (name: string) => ({ health: { limits: { ...health.limits, [name]: false } } });
    expect(await statusOf("limits", without("memory"))).toBe("fail");
    expect(await statusOf("limits", without("pids"))).toBe("fail");
    expect(await statusOf("limits", without("cpu"))).toBe("fail");
    expect(await statusOf("limits", without("swap"))).toBe("warn");
  });

  it("fails an engine without a system call filter", async () => {
    expect(await statusOf("seccomp", { info: { securityOptions: ["name=apparmor"] } })).toBe("fail");
  });

  it("notices a clock that is off by more than seconds, either way", async () => {
    expect(await statusOf("clock", { health: { clockSkewMs: 60_000 } })).toBe("warn");
    expect(await statusOf("clock", { health: { clockSkewMs: -60_000 } })).toBe("warn");
    expect(await statusOf("clock", { health: { clockSkewMs: -900 } })).toBe("ok");
  });

  it("looks at the disk only of an engine on this machine, and not in a virtual one on it", async () => {
    const memoryBytes = (await readMeminfo()).get("MemTotal") ?? 0;
    const found = async (endpoint: string, kernel: string) => {
      const asked = async () => ({ ...info, kernel, memoryBytes });
      const checks = await diagnose({ endpoint, info: asked, health: async () => health });
      return checks.find(({ id }) => id === "disk")?.found;
    };
    expect(await found("tcp://far", release())).toBe("not visible from here");
    expect(await found("unix:///x", "6.6.31-linuxkit")).toBe("not visible from here");
    expect(await found("unix:///x", release())).toMatch(/ [KMGT]iB at \//);
  });

  it.each<[string, string, Changes]>([
    ["engine", "docker 29.5.1 on amd64, Linux 6.12.0, at tcp://engine.example", {}],
    ["versions", "Engine 29.5.1, containerd 2.1.0, runc 1.3.3", {}],
    ["api", "brig uses version 1.44", {}],
    ["cgroups", "version 2, driver systemd", {}],
    ["limits", "memory, swap, cpu, pids", {}],
    ["seccomp", "profile=builtin", {}],
    ["seccomp", "not supported", { info: { securityOptions: [] } }],
    ["apparmor", "apparmor", {}],
    ["apparmor", "apparmor, selinux", { info: { securityOptions: ["name=selinux", "name=apparmor"] } }],
    ["apparmor", "none", { info: { securityOptions: [] } }],
    ["user-namespaces", "rootless", {}],
    ["user-namespaces", "rootless, userns", { info: { securityOptions: ["name=userns", "name=rootless"] } }],
    ["user-namespaces", "not used", { info: { securityOptions: ["name=seccomp"] } }],
    ["runtimes", "runc; default runc", {}],
    ["runtimes", "default x", { info: { runtimes: [], defaultRuntime: "x" } }],
    ["storage", "overlay2", {}],
    ["clock", "the same as on this machine", {}],
    ["clock", "the same as on this machine", { health: { clockSkewMs: 5000 } }],
    ["clock", "the engine is 5.1 s ahead", { health: { clockSkewMs: 5100 } }],
    ["clock", "the engine is 60.0 s behind", { health: { clockSkewMs: -60_000 } }],
    [
      "limits",
      "memory, swap; missing: cpu, pids",
      { health: { limits: { memory: true, swap: true, cpu: false, pids: false } } },
    ],
    [
      "limits",
      "none; missing: memory, swap, cpu, pids",
      { health: { limits: { memory: false, swap: false, cpu: false, pids: false } } },
    ],
  ])("says of %s what is there: %s", async (id, found, changes) => {
    expect(await checkOf(id, changes)).toMatchObject({ found });
  });

  it.each([
    ["docker", "24.0.9", "warn"],
    ["docker", "25.0.0", "ok"],
    ["podman", "4.3.1", "ok"],
  ] as const)("warns of what an old Docker does not protect: %s %s", async (product, version, status) => {
    expect(await statusOf("versions", { info: { product, version } })).toBe(status);
  });

  it("warns of an engine without AppArmor and SELinux, and of one whose root is the host's", async () => {
    const statuses = async (securityOptions: string[]) => [
      await statusOf("apparmor", { info: { securityOptions } }),
      await statusOf("user-namespaces", { info: { securityOptions } }),
    ];
    expect(await statuses(["name=seccomp"])).toEqual(["warn", "warn"]);
    expect(await statuses(["name=selinux", "name=userns"])).toEqual(["ok", "ok"]);
  });

  it("warns of a storage driver that copies whole images", async () => {
    expect(await statusOf("storage", { info: { storageDriver: "vfs" } })).toBe("warn");
    expect(await statusOf("storage", { info: { storageDriver: "fuse-overlayfs" } })).toBe("ok");
  });

  it("looks at no disk that is not there", async () => {
    const memoryBytes = (await readMeminfo()).get("MemTotal") ?? 0;
    const here = { ...info, kernel: release(), memoryBytes };
    const checks = await diagnose({
      endpoint: "unix:///x",
      info: async () => ({ ...here, dockerRootDir: "/proc/nonexistent" }),
      health: async () => health,
    });
    expect(checks.find(({ id }) => id === "disk")).toMatchObject({
      found: "not visible from here",
      status: "ok",
    });
  });

  it("fails a rootless engine on version 1 of control groups, and only warns of any other there", async () => {
    expect(await statusOf("cgroups", { info: { cgroupVersion: "1" } })).toBe("fail");
    const securityOptions = info.securityOptions.filter((option) => option !== "name=rootless");
    expect(await statusOf("cgroups", { info: { cgroupVersion: "1", securityOptions } })).toBe("warn");
  });
});
