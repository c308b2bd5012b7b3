import { expect, it } from "vitest";
import { readEnvironment } from "../../../../../src/lib/env.js";
import { connectEngine } from "../../../../../src/sandbox/docker/connect.js";
import type { Check } from "../../../../../src/sandbox/docker/diagnosis/check.js";
import { diagnose } from "../../../../../src/sandbox/docker/diagnosis/diagnose.js";
import { fakeEngine, reply } from "../../../../support/fake-engine.js";

/** What Docker 20.10.24 answered that ran without root, shortened to what brig reads. */
const withoutLimits = {
  ...{ Driver: "overlay2", NCPU: 2, MemTotal: 4117508096, DockerRootDir: "/proc/nonexistent" },
  ...{ MemoryLimit: false, SwapLimit: false, CpuCfsPeriod: false, CpuCfsQuota: false, PidsLimit: false },
  CgroupDriver: "none",
  Runtimes: {
    "io.containerd.runc.v2": { path: "runc" },
    "io.containerd.runtime.v1.linux": { path: "runc" },
    runc: { path: "runc" },
  },
  DefaultRuntime: "runc",
};
const version = {
  Version: "20.10.24+dfsg1",
  ApiVersion: "1.41",
  MinAPIVersion: "1.12",
  KernelVersion: "6.1.0-50-cloud-amd64",
};
const onVersion1 = {
  ...withoutLimits,
  CgroupVersion: "1",
  SecurityOptions: ["name=seccomp,profile=default", "name=rootless"],
};
const onVersion2 = {
  ...withoutLimits,
  CgroupVersion: "2",
  SecurityOptions: ["name=seccomp,profile=default", "name=rootless", "name=cgroupns"],
};
/** As a service of its user's systemd, to whom systemd gives everything or all but CPU time. */
const asService = {
  ...onVersion2,
  ...{ MemoryLimit: true, SwapLimit: true, CpuCfsPeriod: true, CpuCfsQuota: true, PidsLimit: true },
  CgroupDriver: "systemd",
};
const withoutCpu = { ...asService, CpuCfsPeriod: false, CpuCfsQuota: false };

async function checksOf(info: object): Promise<Map<string, Check>> {
  await using fake = await fakeEngine((_, response) => reply(response, 200, info), { version });
  const env = readEnvironment({ HOME: "/proc/nonexistent" });
  const checks = await diagnose(await connectEngine({ env, endpoint: fake.address }));
  return new Map(checks.map((check) => [check.id, check]));
}

it.each([
  [
    "version 1 of control groups",
    onVersion1,
    /^a rootless engine .* boot with systemd\.unified_cgroup_hierarchy=1/,
  ],
  ["version 2, outside of systemd", onVersion2, /^a rootless engine .* systemctl --user start docker/],
])("Docker without root limits nothing on %s, and the advice says what helps", async (_, info, advice) => {
  const checks = await checksOf(info);
  expect(checks.get("cgroups")).toMatchObject({ status: "fail", advice: expect.stringMatching(advice) });
  expect(checks.get("limits")).toMatchObject({
    status: "fail",
    found: "none; missing: memory, swap, cpu, pids",
    advice: expect.stringContaining("see control groups"),
  });
});

it("Docker without root that systemd runs is fit for brig", async () => {
  const checks = await checksOf(asService);
  expect(checks.get("cgroups")).toMatchObject({ status: "ok", found: "version 2, driver systemd" });
  expect(checks.get("limits")).toMatchObject({ status: "ok", found: "memory, swap, cpu, pids" });
  expect(checks.get("user-namespaces")).toMatchObject({ status: "ok", found: "rootless" });
});

it("Docker without root cannot limit what systemd does not give to users, and the advice names the setting", async () => {
  expect((await checksOf(withoutCpu)).get("limits")).toMatchObject({
    status: "fail",
    found: "memory, swap, pids; missing: cpu",
    advice: expect.stringMatching(/Delegate=cpu .*user@\.service\.d/),
  });
});

it("an engine of root's is not told about the users of systemd", async () => {
  const checks = await checksOf({ ...withoutCpu, SecurityOptions: ["name=seccomp,profile=default"] });
  expect(checks.get("limits")).toMatchObject({
    status: "fail",
    advice: expect.stringMatching(/^boot the kernel/),
  });
});
