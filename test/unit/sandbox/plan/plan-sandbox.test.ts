import { mkdir, mkdtemp, readdir, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { commandEnvironment } from "../../../../src/sandbox/plan/image-settings.js";
import { isAtOrBelow } from "../../../../src/sandbox/plan/paths.js";
import { planSandbox } from "../../../../src/sandbox/plan/plan-sandbox.js";
import { engine, planFor, requestFor, type Wanted } from "./plan-fixture.js";

const MIB = 1024 * 1024;
const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
let folder: string;
let repo: string;

beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "brig-plan-")));
  repo = join(folder, "repo");
  await mkdir(repo);
});
afterEach(async () => await rm(folder, { recursive: true }));

describe("the plan of a mode", () => {
  it("read-only mounts the workspace read-only and makes nothing in it", async () => {
    const plan = await planFor(repo, { mode: "read-only" });
    expect(plan).toMatchObject({ rootfs: "ro", network: "none", workspace: repo, workingDirectory: repo });
    expect(plan.mounts).toEqual([
      { kind: "workspace", path: repo, access: "ro", identity: expect.anything() },
    ]);
    expect(plan.placeholders).toEqual([]);
  });

  it("workspace-write mounts it writable with the protected names on top, and the caller's uid", async () => {
    const plan = await planFor(repo);
    expect(plan.mounts.map(({ kind, access }) => `${kind} ${access}`)).toEqual([
      "workspace rw",
      ...Array(4).fill("protected ro"),
    ]);
    expect(plan.placeholders.map((path) => path.slice(repo.length + 1))).toEqual([
      ".git",
      ".codex",
      ".agents",
      ".brig",
    ]);
    expect(plan.user).toEqual({ uid: 1000, gid: 1000 });
    expect(plan.labels["brig.placeholders"]).toBe(JSON.stringify(plan.placeholders));
    expect(await readdir(repo)).toEqual([]);
  });

  it("danger-full-access is root with a bridge, and still limited", async () => {
    const plan = await planFor(repo, { mode: "danger-full-access" });
    expect(plan).toMatchObject({
      rootfs: "rw",
      network: "bridge",
      user: { uid: 0, gid: 0 },
      capabilities: "full-access",
      seccomp: "full-access",
      tmpfs: [],
      placeholders: [],
      home: "/root",
      limits: { memoryBytes: 4096 * MIB, nanoCpus: 4e9, pids: 1024, coreBytes: 0 },
    });
  });

  it("gives a caller who is root uid 0 without a single capability", async () => {
    const plan = await planFor(repo, { hostUser: { uid: 0, gid: 0 } });
    expect(plan).toMatchObject({ user: { uid: 0, gid: 0 }, capabilities: "none", noNewPrivileges: true });
  });

  it("is root in the namespace of a rootless engine, which is the caller outside of it", async () => {
    const rootless = { ...engine, securityOptions: ["name=seccomp,profile=default", "name=rootless"] };
    expect(await planFor(repo, { engine: rootless })).toMatchObject({
      user: { uid: 0, gid: 0 },
      capabilities: "none",
    });
  });

  it("takes the user of a policy that names one", async () => {
    const request = await requestFor(repo);
    request.policy = { ...request.policy, policy: { ...request.policy.policy, user: "1234:5678" } };
    expect((await planSandbox(request)).user).toEqual({ uid: 1234, gid: 5678 });
  });
});

describe("without a workspace", () => {
  it("commands start in / and nothing of the host is seen", async () => {
    const plan = await planFor(null);
    expect(plan).toMatchObject({ workspace: null, workingDirectory: "/", mounts: [], placeholders: [] });
  });

  it("an engine on another machine is fine", async () => {
    const endpoint = "tcp://build.example:2376";
    expect((await planFor(null, { endpoint })).mounts).toEqual([]);
    await expect(planFor(repo, { endpoint })).rejects.toMatchObject({ code: "workspace.invalid" });
  });
});

describe("the network", () => {
  it("full is a bridge", async () => {
    expect((await planFor(repo, { network: { kind: "full" } })).network).toBe("bridge");
  });

  it("with an allow-list is none, and the hosts are for brig to decide about", async () => {
    for (const hosts of [["example.com"], []])
      expect(await planFor(repo, { network: { kind: "allowlist", hosts } })).toMatchObject({
        network: "none",
        egress: { hosts },
      });
    expect(await planFor(repo, { network: { kind: "full" } })).toMatchObject({ egress: null });
  });
});

describe("further writable directories", () => {
  it("are resolved, checked, mounted and protected like the workspace", async () => {
    await mkdir(join(folder, "data/.git"), { recursive: true });
    await symlink("data", join(folder, "link"));
    const plan = await planFor(repo, {
      addDirs: [join(folder, "link")],
      writableRoots: [join(folder, "data")],
    });
    const data = plan.mounts.filter(({ path }) => isAtOrBelow(path, join(folder, "data")));
    expect(data.map(({ kind, access }) => `${kind} ${access}`)).toEqual([
      "writable-root rw",
      ...Array(4).fill("protected ro"),
    ]);
  });

  it("that are sensitive are refused like a workspace", async () => {
    await expect(planFor(repo, { addDirs: ["/etc"] })).rejects.toMatchObject({
      code: "workspace.invalid",
      message: expect.stringContaining("may not be the writable directory"),
    });
  });

  it("are refused by read-only when a flag asks for them, and left aside when the configuration does", async () => {
    await mkdir(join(folder, "data"));
    const data = [join(folder, "data")];
    await expect(planFor(repo, { mode: "read-only", addDirs: data })).rejects.toMatchObject({
      code: "usage.invalid",
    });
    expect((await planFor(repo, { mode: "read-only", writableRoots: data })).mounts).toHaveLength(1);
  });

  it("that are the workspace itself change nothing", async () => {
    expect(await planFor(repo, { addDirs: [repo] })).toEqual(await planFor(repo));
  });
});

describe("memory-backed directories", () => {
  const inMemory = (plan: Awaited<ReturnType<typeof planFor>>) =>
    plan.limits.shmBytes + plan.tmpfs.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);

  it("belong to the session's user and have the policy's sizes", async () => {
    const plan = await planFor(repo, { hostUser: { uid: 501, gid: 20 } });
    expect(plan.tmpfs).toEqual([
      {
        path: "/tmp",
        sizeBytes: 1024 * MIB,
        maxInodes: 200_000,
        exec: true,
        mode: "1777",
        uid: 501,
        gid: 20,
      },
      {
        path: "/home/brig",
        sizeBytes: 768 * MIB,
        maxInodes: 200_000,
        exec: true,
        mode: "700",
        uid: 501,
        gid: 20,
      },
      { path: "/run", sizeBytes: 32 * MIB, maxInodes: 4096, exec: false, mode: "755", uid: 501, gid: 20 },
    ]);
    expect(plan.containerEnvironment.HOME).toBe("/home/brig");
  });

  it("take at most half the memory, whatever the machine has, in whole pages", async () => {
    const request = await requestFor(repo);
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 128 * MIB, max: 2 ** 42 }), async (memoryBytes) => {
        const plan = await planSandbox({ ...request, engine: { ...engine, memoryBytes } });
        expect(plan.limits.memoryBytes).toBeLessThanOrEqual(memoryBytes);
        expect(inMemory(plan) * 2).toBeLessThanOrEqual(plan.limits.memoryBytes);
        for (const size of [
          plan.limits.memoryBytes,
          plan.limits.shmBytes,
          ...plan.tmpfs.map((one) => one.sizeBytes),
        ])
          expect(size % 65_536).toBe(0);
      }),
      { numRuns: 50 },
    );
  });

  it("never lie at or below a directory of the host, which they would hide", async () => {
    const request = await requestFor(repo);
    const { policy } = request.policy;
    const tmpfs = [repo, join(repo, "cache"), folder].map((path) => ({
      ...policy.tmpfs[0]!,
      path,
      sizeMb: 1,
    }));
    request.policy = { ...request.policy, policy: { ...policy, tmpfs: [...policy.tmpfs, ...tmpfs] } };
    const plan = await planSandbox(request);
    expect(plan.tmpfs.map(({ path }) => path)).toEqual(["/tmp", "/home/brig", "/run", folder]);
  });

  it("make room for a workspace at HOME: HOME moves, so that it is not part of the workspace", async () => {
    const request = await requestFor(repo);
    const { policy } = request.policy;
    const tmpfs = policy.tmpfs.map((one) =>
      one.path === policy.home ? { ...one, path: join(repo, "home") } : one,
    );
    request.policy = { ...request.policy, policy: { ...policy, tmpfs, home: join(repo, "home") } };
    const plan = await planSandbox(request);
    expect(plan.home).toBe("/brig-home");
    expect(plan.containerEnvironment.HOME).toBe("/brig-home");
    expect(plan.tmpfs.map(({ path }) => path)).toEqual(["/tmp", "/brig-home", "/run"]);
  });
});

describe("limits", () => {
  it("are never more than the machine has, since an engine refuses that", async () => {
    const small = { ...engine, cpus: 2, memoryBytes: 1024 * MIB };
    const { limits } = await planFor(repo, { engine: small });
    expect(limits).toMatchObject({ nanoCpus: 2e9, memoryBytes: 1024 * MIB, pids: 1024 });
  });

  it("are the policy's where the engine does not know its machine: a limit of 0 would be none", async () => {
    const { limits } = await planFor(repo, { engine: { ...engine, cpus: 0, memoryBytes: 0 } });
    expect(limits).toMatchObject({ nanoCpus: 4e9, memoryBytes: 4096 * MIB });
  });
});

describe("the environment", () => {
  it("of the caller goes with each command and never into the container's description", async () => {
    const plan = await planFor(repo, { env: { API_TOKEN: "s3cret", HOME: "/mine" } });
    expect(plan.containerEnvironment).toEqual({ HOME: "/home/brig", LANG: "C.UTF-8", PATH });
    expect(commandEnvironment(plan)).toEqual({
      HOME: "/mine",
      LANG: "C.UTF-8",
      PATH: `${PATH}:/.brig/bin`,
      API_TOKEN: "s3cret",
    });
  });
});

describe("a lease", () => {
  it("is as long as asked for, and none at all for a container that is kept", async () => {
    expect((await planFor(repo)).leaseSeconds).toBe(60);
    expect((await planFor(repo, { keep: true })).leaseSeconds).toBe(0);
  });
});

describe("mounts below what must be read-only", () => {
  const proc = () => join(folder, "proc");
  const mounted = async (path: string, wanted: Wanted = {}) => {
    await mkdir(join(proc(), "self"), { recursive: true });
    const lines = ["1 0 0:1 / / rw - ext4 /dev/vda rw", `2 1 0:2 / ${path} rw - tmpfs none rw`, ""];
    await writeFile(join(proc(), "self/mountinfo"), lines.join("\n"));
    return await planFor(repo, { host: { homeDirectory: null, procDirectory: proc() }, ...wanted });
  };

  it("would stay writable on an engine before 25, so the workspace is refused", async () => {
    await expect(mounted(`${repo}/sub`, { mode: "read-only" })).rejects.toMatchObject({
      code: "workspace.invalid",
      message: expect.stringContaining(`${repo}/sub`),
      hint: expect.stringContaining("unmount it"),
    });
    await mkdir(join(repo, ".git"));
    await expect(mounted(`${repo}/.git/objects`)).rejects.toMatchObject({ code: "workspace.invalid" });
  });

  it("are fine where the engine makes them read-only too", async () => {
    const recursive = { ...engine, version: "25.0.3" };
    expect((await mounted(`${repo}/sub`, { mode: "read-only", engine: recursive })).mounts).toHaveLength(1);
    for (const other of [
      { ...recursive, kernel: "5.10.0-28-amd64" },
      { ...recursive, product: "podman" },
      { ...recursive, version: "dev" },
    ])
      await expect(mounted(`${repo}/sub`, { mode: "read-only", engine: other })).rejects.toThrow(
        "leave it writable",
      );
  });

  it("are fine where nothing must be read-only", async () => {
    expect((await mounted(`${repo}/sub`)).mounts[0]).toMatchObject({ access: "rw" });
  });
});
