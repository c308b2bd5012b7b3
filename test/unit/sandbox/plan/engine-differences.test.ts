import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { planSandbox } from "../../../../src/sandbox/plan/plan-sandbox.js";
import type { Policy } from "../../../../src/sandbox/policy/policy.js";
import { engine, planFor, requestFor, type Wanted } from "./plan-fixture.js";

let folder: string;
let repo: string;

beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "brig-engines-")));
  repo = join(folder, "repo");
  await mkdir(repo);
});
afterEach(async () => await rm(folder, { recursive: true }));

async function planWith(policy: Partial<Policy>, wanted: Wanted = {}) {
  const request = await requestFor(repo, wanted);
  request.policy = { ...request.policy, policy: { ...request.policy.policy, ...policy } };
  return await planSandbox(request);
}

describe("a mount below a workspace that is read-only", () => {
  async function isTaken(changed: Partial<typeof engine>) {
    const procDirectory = join(folder, "proc");
    await mkdir(join(procDirectory, "self"), { recursive: true });
    const lines = ["1 0 0:1 / / rw - ext4 /dev/vda rw", `2 1 0:2 / ${repo}/sub rw - tmpfs none rw`, ""];
    await writeFile(join(procDirectory, "self/mountinfo"), lines.join("\n"));
    const host = { homeDirectory: null, procDirectory };
    const given = { ...engine, version: "25.0.0", kernel: "5.12.0", ...changed };
    return await planFor(repo, { mode: "read-only", host, engine: given }).then(
      () => true,
      () => false,
    );
  }

  it.each([
    ["24.9.9", false],
    ["25.0.0", true],
    ["25.0", true],
    ["26.0.0", true],
    ["100.0", true],
    ["25", false],
    ["v25.0.0", false],
    ["25.", false],
    ["", false],
  ])("is read-only as well with version %j of Docker: %s", async (version, expected) => {
    expect(await isTaken({ version })).toBe(expected);
  });

  it.each([
    ["5.12.0", true],
    ["5.11.99", false],
    ["5.9.0", false],
    ["5.120.1", true],
    ["4.20.0", false],
    ["6.0.0", true],
    ["6.1.0-test", true],
    ["unknown", false],
  ])("is read-only as well with the kernel %j: %s", async (kernel, expected) => {
    expect(await isTaken({ kernel })).toBe(expected);
  });

  it("is not known to be read-only with an engine that is not Docker", async () => {
    expect(await isTaken({ product: "podman" })).toBe(false);
  });
});

describe("the user of commands", () => {
  it("is root where the policy says so, whoever the caller is", async () => {
    const plan = await planWith({ user: "root" }, { hostUser: { uid: 501, gid: 20 } });
    expect(plan.user).toEqual({ uid: 0, gid: 0 });
    expect(plan.tmpfs.map(({ uid, gid }) => [uid, gid])).toEqual(plan.tmpfs.map(() => [0, 0]));
  });

  it("is the one that the policy names also in a rootless engine", async () => {
    const rootless = { ...engine, securityOptions: ["name=rootless"] };
    expect((await planWith({ user: "1:2" }, { engine: rootless })).user).toEqual({ uid: 1, gid: 2 });
  });
});

describe("the kernel of a sandbox", () => {
  it("is gVisor's own where its runtime is, by name or by default", async () => {
    const runtimes = [...engine.runtimes, { name: "boxed", program: "/opt/runsc", args: [] }];
    const kernelOf = async (wanted: Wanted) => {
      const { kernel, runtime } = await planFor(repo, wanted);
      return [kernel, runtime];
    };
    expect(await kernelOf({})).toEqual(["shared", null]);
    expect(await kernelOf({ runtime: "runc" })).toEqual(["shared", "runc"]);
    expect(await kernelOf({ runtime: "boxed", engine: { ...engine, runtimes } })).toEqual([
      "gvisor",
      "boxed",
    ]);
    const byDefault = { ...engine, runtimes, defaultRuntime: "boxed" };
    expect(await kernelOf({ engine: byDefault })).toEqual(["gvisor", null]);
  });

  it("is not of a runtime that the engine does not have", async () => {
    await expect(planFor(repo, { runtime: "other" })).rejects.toMatchObject({ code: "usage.invalid" });
  });
});

describe("what else is asked for", () => {
  it("is planned as it is asked for", async () => {
    const volumes = [{ volume: "cache", path: "/cache" }] as NonNullable<Wanted["volumes"]>;
    expect(
      await planFor(repo, { volumes, outlivesProcesses: true, workingDirectory: "/else" }),
    ).toMatchObject({
      volumes,
      outlivesProcesses: true,
      workingDirectory: "/else",
    });
    expect(await planFor(repo)).toMatchObject({
      volumes: [],
      outlivesProcesses: false,
      workingDirectory: repo,
    });
  });

  it.each([
    [{ kind: "none" }, { kind: "allowlist", hosts: ["a.test"] }, { hosts: [] }],
    [{ kind: "none" }, { kind: "none" }, null],
    [{ kind: "none" }, { kind: "full" }, null],
    [
      { kind: "allowlist", hosts: ["b.test"] },
      { kind: "allowlist", hosts: ["a.test"] },
      { hosts: ["b.test"] },
    ],
  ] as const)(
    "is a list of hosts with the network %j and that of the set-up %j: %j",
    async (own, of, egress) => {
      const setup = { network: of } as unknown as NonNullable<Wanted["setup"]>;
      const network = own as unknown as NonNullable<Wanted["network"]>;
      expect(await planFor(repo, { network, setup })).toMatchObject({ network: "none", egress });
    },
  );

  it("is refused with its hint where the policy takes no further directory", async () => {
    await expect(planFor(repo, { mode: "read-only", addDirs: [folder] })).rejects.toMatchObject({
      message: "the policy read-only takes no further writable directories",
      hint: expect.stringContaining("--add-dir"),
    });
    expect((await planFor(repo, { mode: "read-only", addDirs: [] })).workspace).toBe(repo);
  });

  it("names a workspace that may not be one as the workspace", async () => {
    await expect(planFor("/etc")).rejects.toMatchObject({
      code: "workspace.invalid",
      message: expect.stringContaining("may not be the workspace"),
    });
  });
});

describe("the home of commands", () => {
  it("is the policy's, unless it is the workspace or lies in it", async () => {
    const homeOf = async (home: string) => (await planWith({ home })).home;
    expect(await homeOf("/home/brig")).toBe("/home/brig");
    expect(await homeOf(repo)).toBe("/brig-home");
    expect(await homeOf(join(repo, "deep/home"))).toBe("/brig-home");
    expect(await homeOf(folder)).toBe(folder);
    expect(await homeOf(`${repo}-other`)).toBe(`${repo}-other`);
  });
});
