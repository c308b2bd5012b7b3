import { mkdir, mkdtemp, realpath, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { BrigError } from "../../../../src/errors.js";
import { RefusedRequest } from "../../../../src/sandbox/docker/engine-failure.js";
import { explainMountFailure } from "../../../../src/sandbox/overlay/plan-overlay.js";
import { createContainerBody } from "../../../../src/sandbox/plan/create-body.js";
import { engine, planFor, type Wanted } from "../plan/plan-fixture.js";

const overlay = { id: "7a0c1d7e-0000-4000-8000-000000000000" };
const upper = `brig-${overlay.id}-upper`;
let folder: string;
let repo: string;

beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "brig-overlay-")));
  repo = join(folder, "repo");
  await mkdir(join(repo, ".git"), { recursive: true });
});
afterEach(async () => await rm(folder, { recursive: true }));

const planned = async (wanted: Wanted = {}) => await planFor(repo, { overlay, ...wanted });

describe("the plan of a copy-on-write workspace", () => {
  it("has the volume in place of the directory, and no directory to make on the host", async () => {
    await mkdir(join(repo, "sub/.git"), { recursive: true });
    const plan = await planned();
    expect(plan.mounts.map(({ kind, path, source }) => [kind, path, source])).toEqual([
      ["workspace", repo, { kind: "volume", volume: `brig-${overlay.id}-merged` }],
      ["protected", join(repo, ".git"), undefined],
      ["protected", join(repo, "sub/.git"), undefined],
    ]);
    expect(plan.placeholders).toEqual([]);
    expect(plan.absentNames).toEqual([".codex", ".agents", ".brig"].map((name) => join(repo, name)));
  });

  it("names the layers, and entries by which the lower one is recognised", async () => {
    await writeFile(join(repo, "file"), "");
    await symlink("file", join(repo, "link"));
    const { ino } = await stat(join(repo, "file"));
    expect((await planned()).overlay).toMatchObject({
      path: repo,
      lower: repo,
      upper: `/var/lib/docker/volumes/${upper}/_data`,
      witnesses: [{ path: join(repo, "file"), ino: String(ino) }],
    });
  });

  it("mounts the volume without copying the image's files into it, and absent names as empty memory", async () => {
    const secrets = {
      toolbox: { volume: "brig-toolbox", directory: null },
      tokenHash: "ab",
      seccompJson: "{}",
    };
    const { HostConfig } = createContainerBody(await planned({ mode: "workspace-write" }), secrets);
    expect(HostConfig.Mounts).toContainEqual({
      Type: "volume",
      Source: `brig-${overlay.id}-merged`,
      Target: repo,
      ReadOnly: false,
      VolumeOptions: { NoCopy: true },
    });
    expect(HostConfig.Tmpfs[join(repo, ".codex")]).toMatch(/^ro,.*mode=555$/);
  });

  it("is mounted read-only in read-only mode", async () => {
    expect((await planned({ mode: "read-only" })).mounts).toMatchObject([{ path: repo, access: "ro" }]);
  });

  it("has another writable directory inside as it is on the host, with its own placeholders", async () => {
    const data = join(repo, "deep/data");
    await mkdir(data, { recursive: true });
    const plan = await planned({ addDirs: [data] });
    const mount = plan.mounts.find(({ path }) => path === data);
    expect(mount?.access).toBe("rw");
    expect(mount?.source).toBeUndefined();
    expect(plan.mounts.filter(({ kind }) => kind === "pin")).toEqual([]);
    expect(plan.placeholders).toEqual([".git", ".codex", ".agents", ".brig"].map((name) => join(data, name)));
  });

  it("is none without a workspace", async () => {
    expect((await planFor(null, { overlay })).overlay).toBeNull();
  });
});

describe("a copy-on-write workspace is refused", () => {
  it.each([",", ":", "\\"])("with %j in its path", async (separator) => {
    repo = join(folder, `a${separator}b`);
    await mkdir(repo);
    await expect(planned()).rejects.toMatchObject({
      code: "workspace.invalid",
      message: expect.stringContaining(`its path contains ${JSON.stringify(separator)}`),
      hint: "rename the directory, or use --workspace bind",
    });
  });

  it("with a path too long for the kernel's mount options", async () => {
    repo = join(folder, ...Array.from({ length: 20 }, () => "x".repeat(199)));
    await mkdir(repo, { recursive: true });
    await expect(planned()).rejects.toMatchObject({
      code: "workspace.invalid",
      message: expect.stringMatching(
        /its path is too long for the options of an overlay mount, by \d+ bytes/,
      ),
      hint: "use a shorter path, or use --workspace bind",
    });
  });

  it.each<[string, Partial<typeof engine>, string | undefined, string]>([
    [
      "a rootless engine",
      { securityOptions: ["name=rootless"] },
      undefined,
      "a rootless engine may not mount them",
    ],
    [
      "an engine that maps user ids",
      { securityOptions: ["name=userns"] },
      undefined,
      "the engine maps user ids",
    ],
    [
      "gVisor",
      { runtimes: [{ name: "runsc", program: "runsc", args: [] }] },
      "runsc",
      "they are not supported with gVisor",
    ],
    ["an engine with a strange directory", { dockerRootDir: "/a:b" }, undefined, "contains a separator"],
  ])("by %s", async (_, different, runtime, reason) => {
    await expect(planned({ engine: { ...engine, ...different }, runtime })).rejects.toMatchObject({
      code: "policy.not-enforced",
      message: expect.stringContaining(reason),
      hint: "use --workspace bind",
    });
  });

  it("on an engine of another machine", async () => {
    await expect(planned({ endpoint: "tcp://10.0.0.1:2376" })).rejects.toMatchObject({
      code: "workspace.invalid",
      hint: expect.stringContaining("an engine on this machine"),
    });
  });

  it("with a mount below it, unless another mount shows that", async () => {
    const procDirectory = join(folder, "proc");
    await mkdir(join(procDirectory, "self"), { recursive: true });
    await mkdir(join(repo, "mnt"));
    const line = `99 1 8:1 / ${repo}/mnt rw - ext4 /dev/sda rw`;
    await writeFile(join(procDirectory, "self/mountinfo"), `${line}\n`);
    const host = { homeDirectory: null, procDirectory };
    await expect(planned({ host })).rejects.toMatchObject({
      code: "workspace.invalid",
      message: expect.stringContaining(`${JSON.stringify(join(repo, "mnt"))} is a mount of its own`),
      hint: "unmount it, add it with --add-dir, or use --workspace bind",
    });
    await expect(planned({ host, addDirs: [join(repo, "mnt")] })).resolves.toMatchObject({ workspace: repo });
  });
});

describe("a failure to mount", () => {
  const about = async () => {
    const { overlay: layers } = await planned();
    if (layers === null) throw new Error("no overlay was planned");
    return layers;
  };
  const failure = (words: string) =>
    new BrigError("cannot start", {
      code: "engine.failed",
      cause: new RefusedRequest(500, JSON.stringify({ message: words })),
    });

  it("names the workspace and the kernel's reason", async () => {
    const words = `error while mounting volume 'x': failed to mount local volume: mount overlay:/v/brig-${overlay.id}-merged/_data, data: lowerdir=${repo}: invalid argument`;
    expect(explainMountFailure(failure(words), await about())).toMatchObject({
      code: "workspace.invalid",
      message: `the engine cannot mount a copy-on-write layer over ${JSON.stringify(repo)}: invalid argument`,
    });
  });

  it("has what mount says on Podman", async () => {
    const volume = `brig-${overlay.id}-merged`;
    const place = `mounting volume ${volume} for container 1: mount: /v/${volume}/_data`;
    const words = `${place}: special device overlay does not exist.\n       dmesg(1) may have more.\n`;
    expect(explainMountFailure(failure(words), await about())).toMatchObject({
      code: "workspace.invalid",
      message: `the engine cannot mount a copy-on-write layer over ${JSON.stringify(repo)}: special device overlay does not exist`,
    });
  });

  it("is not taken for another failure", async () => {
    const other = failure("no space left on device");
    expect(explainMountFailure(other, await about())).toBe(other);
    const error = new TypeError("x");
    expect(explainMountFailure(error, await about())).toBe(error);
  });
});
