import { mkdir, mkdtemp, readFile, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { packageRoot } from "../../../../src/package-root.js";
import type { ContainerBody, Mount } from "../../../../src/sandbox/docker/engine-types.js";
import { NAME_SERVER } from "../../../../src/sandbox/egress/addresses.js";
import { createContainerBody } from "../../../../src/sandbox/plan/create-body.js";
import { SANDBOX_MODES } from "../../../../src/sandbox/policy/modes.js";
import { anywhere, engine, planFor, type Wanted } from "./plan-fixture.js";

const secrets = {
  toolbox: { volume: "brig-toolbox-1234", directory: "/volumes/brig-toolbox-1234/_data" },
  tokenHash: "ab".repeat(32),
  seccompJson: '{"the":"filter"}',
};
let folder: string;
let repo: string;

beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "brig-body-")));
  repo = join(folder, "repo");
  await mkdir(join(repo, ".git"), { recursive: true });
});
afterEach(async () => await rm(folder, { recursive: true }));

async function expectGvisorBody(wanted: Wanted) {
  const seccompJson =
    '{"the":"filter","syscalls":[{"names":["clone3"],"action":"SCMP_ACT_ERRNO","errnoRet":38}]}';
  const { Entrypoint, HostConfig } = createContainerBody(await planFor(repo, wanted), {
    ...secrets,
    seccompJson,
  });
  expect(Entrypoint).toEqual(["/.brig/runner-gvisor"]);
  expect(HostConfig.Tmpfs["/sys/fs/cgroup"]).toMatch(/^ro,/);
  const [, filter = ""] =
    HostConfig.SecurityOpt.find((option) => option.startsWith("seccomp="))?.split("=") ?? [];
  expect(JSON.parse(filter)).toEqual({
    the: "filter",
    syscalls: [{ names: ["clone3"], action: "SCMP_ACT_ALLOW" }],
  });
}

async function bodyFor(wanted: Wanted = {}) {
  return createContainerBody(await planFor(repo, wanted), secrets);
}

describe("the body sent to the engine", () => {
  for (const mode of SANDBOX_MODES)
    for (const kind of ["none", "full"] as const)
      it(`of ${mode} with network ${kind} is exactly the golden one`, async () => {
        // Where the workspace of this test lies depends on the machine.
        const plan = { ...(await planFor(repo, { mode, network: { kind } })), parents: [] };
        const body = anywhere(createContainerBody(plan, secrets), repo);
        const golden = `../../../fixtures/container-bodies/${mode}.network-${kind}.json`;
        await expect(`${JSON.stringify(body, null, 2)}\n`).toMatchFileSnapshot(golden);
      });

  it("with an allow-list has no network either, and brig for the only name server", async () => {
    const none = (await bodyFor({ network: { kind: "none" } })).HostConfig;
    const allowed = { network: { kind: "allowlist", hosts: ["a.org"] } } as const;
    const Sysctls = { ...none.Sysctls, "net.ipv4.ip_unprivileged_port_start": "0" };
    const { NetworkDisabled, HostConfig } = await bodyFor(allowed);
    const resolver = {
      ...{ Type: "bind", Target: "/etc/resolv.conf", ReadOnly: true },
      Source: "/volumes/brig-toolbox-1234/_data/resolv.conf",
    };
    expect(HostConfig).toEqual({ ...none, Mounts: none.Mounts.toSpliced(2, 0, resolver as Mount), Sysctls });
    expect(NetworkDisabled).toBe(true);
    const unknown = { ...secrets, toolbox: { ...secrets.toolbox, directory: null } };
    const without = createContainerBody(await planFor(repo, allowed), unknown);
    expect(without.HostConfig).toEqual({
      ...none,
      Mounts: none.Mounts.filter(({ Target }) => Target !== "/etc/hosts"),
      ...{ Dns: ["127.83.0.1"], DnsSearch: ["."], Sysctls },
    });
    expect(without.NetworkDisabled).toBeUndefined();
  });

  it("has the address of brig's name server in the toolbox", async () => {
    const text = await readFile(join(packageRoot, "images/toolbox/resolv.conf"), "utf8");
    expect(text).toBe(`nameserver ${NAME_SERVER.address}\nsearch .\n`);
  });

  it("is the same for the same plan", async () => {
    const plan = await planFor(repo);
    expect(createContainerBody(plan, secrets)).toEqual(createContainerBody(structuredClone(plan), secrets));
  });

  it("has a read-only tmpfs for each directory in memory that leads to the workspace", async () => {
    const { HostConfig } = createContainerBody({ ...(await planFor(repo)), parents: ["/tmp/a"] }, secrets);
    expect(HostConfig.Tmpfs["/tmp/a"]).toMatch(/^ro,nosuid,nodev,noexec,size=/);
  });

  it.each([
    ["brig", false, [`seccomp=${secrets.seccompJson}`]],
    ["full-access", false, [`seccomp=${secrets.seccompJson}`]],
    ["brig", true, ["no-new-privileges", `seccomp=${secrets.seccompJson}`]],
    ["engine-default", true, ["no-new-privileges"]],
    ["engine-default", false, []],
  ] as const)(
    "has the filter %s, whether or not there are new privileges (%s)",
    async (seccomp, noNewPrivileges, options) => {
      const plan = await planFor(repo);
      const { HostConfig } = createContainerBody({ ...plan, seccomp, noNewPrivileges }, secrets);
      expect(HostConfig.SecurityOpt).toEqual(options);
    },
  );

  it("names a runtime only when one was asked for", async () => {
    expect((await bodyFor()).HostConfig).not.toHaveProperty("Runtime");
    expect((await bodyFor({ runtime: "runc" })).HostConfig.Runtime).toBe("runc");
  });

  it("for gVisor has the runner that can be read, no cgroup files and a filter that leaves clone3 to gVisor", () =>
    expectGvisorBody({ runtime: "io.containerd.runsc.v1" }));

  it("for a runtime of any name goes by its program", async () => {
    const runtimes = [
      { name: "boxed", program: "/opt/gvisor/runsc", args: [] },
      { name: "runsc", program: "/usr/bin/runc", args: [] },
    ];
    await expectGvisorBody({ runtime: "boxed", engine: { ...engine, runtimes } });
    const common = await bodyFor({ runtime: "runsc", engine: { ...engine, runtimes } });
    expect(common.Entrypoint).toEqual(["/.brig/runner"]);
    expect(common.HostConfig.Tmpfs).not.toHaveProperty("/sys/fs/cgroup");
  });

  it("has a lease of 0 for a container that is kept", async () => {
    const { Cmd } = await bodyFor({ keep: true });
    expect(Cmd[Cmd.indexOf("--lease") + 1]).toBe("0");
  });

  it("has no secret, and nothing of the caller's environment", async () => {
    const env = { API_TOKEN: "s3cret", AWS_SECRET_ACCESS_KEY: "k3y", PASSWORD: "p4ss" };
    const text = JSON.stringify(await bodyFor({ env }));
    for (const part of Object.entries(env).flat()) expect(text).not.toContain(part);
    expect((await bodyFor({ env })).Env.filter((entry) => /TOKEN|KEY|SECRET|PASS/i.test(entry))).toEqual([]);
  });

  it("drops every capability for work on a tree, and adds only what reads and writes every file there", async () => {
    const plan = { ...(await planFor(repo, {})), capabilities: "tree" as const };
    expect(createContainerBody(plan, secrets).HostConfig).toMatchObject({
      CapDrop: ["ALL"],
      CapAdd: ["CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID"],
    });
  });

  it("never asks for privileges, devices, host namespaces or more capabilities, in any mode", async () => {
    for (const mode of SANDBOX_MODES) {
      const { HostConfig, ...rest } = await bodyFor({ mode });
      expect(HostConfig).toMatchObject({
        Privileged: false,
        CapAdd: [],
        IpcMode: "private",
        CgroupnsMode: "private",
        AutoRemove: true,
        LogConfig: { Type: "none" },
        RestartPolicy: { Name: "no" },
      });
      expect(["none", "bridge"]).toContain(HostConfig.NetworkMode);
      for (const key of [
        "PidMode",
        "UTSMode",
        "UsernsMode",
        "Devices",
        "Binds",
        "VolumesFrom",
        "PortBindings",
      ])
        expect(HostConfig).not.toHaveProperty(key);
      expect(rest.User).toMatch(/^\d+:\d+$/);
    }
  });

  it("limits memory without swap, processes, CPU, files and core dumps in every mode", async () => {
    for (const mode of SANDBOX_MODES) {
      const { Memory, MemorySwap, PidsLimit, NanoCpus, Ulimits, ShmSize } = (await bodyFor({ mode }))
        .HostConfig;
      expect(MemorySwap).toBe(Memory);
      for (const limit of [Memory, PidsLimit, NanoCpus, ShmSize]) expect(limit).toBeGreaterThan(0);
      expect(Ulimits?.map(({ Name }) => Name)).toEqual(["core", "nofile"]);
    }
  });

  it("mounts the toolbox read-only and every bind privately", async () => {
    const [toolbox, hosts, ...others] = (await bodyFor()).HostConfig.Mounts;
    expect(toolbox).toMatchObject({ Type: "volume", Target: "/.brig", ReadOnly: true });
    expect(hosts).toEqual({
      Type: "bind",
      Source: "/volumes/brig-toolbox-1234/_data/hosts",
      Target: "/etc/hosts",
      ReadOnly: true,
    });
    const binds = others.filter(({ Type }) => Type === "bind");
    expect(binds.length).toBeGreaterThan(1);
    for (const bind of binds) expect(bind).toMatchObject({ BindOptions: { Propagation: "rprivate" } });
    // The only other one is the sandbox's own terminals.
    expect(others.filter(({ Type }) => Type !== "bind")).toMatchObject([{ Target: "/dev/pts" }]);
  });

  it("leaves the engine out of an empty network, where it says what /etc/hosts can be made of", async () => {
    const isLeftOut = ({ NetworkDisabled, HostConfig: { Mounts, NetworkMode } }: ContainerBody) => [
      NetworkDisabled === true,
      Mounts.some(({ Target }) => Target === "/etc/hosts"),
      NetworkMode,
    ];
    expect(isLeftOut(await bodyFor())).toEqual([true, true, "none"]);
    expect(isLeftOut(await bodyFor({ network: { kind: "full" } }))).toEqual([false, false, "bridge"]);
    const unknown = { ...secrets, toolbox: { ...secrets.toolbox, directory: null } };
    expect(isLeftOut(createContainerBody(await planFor(repo), unknown))).toEqual([false, false, "none"]);
  });
});
