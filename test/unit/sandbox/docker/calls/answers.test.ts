import { describe, expect, it } from "vitest";
import { readEnvironment } from "../../../../../src/lib/env.js";
import { connectEngine } from "../../../../../src/sandbox/docker/connect.js";
import type { Engine } from "../../../../../src/sandbox/docker/engine-types.js";
import { fakeEngine, reply } from "../../../../support/fake-engine.js";

const env = readEnvironment({ HOME: "/proc/nonexistent" });

/** What a call makes of an answer of the engine. */
async function made<T>(answer: object, call: (engine: Engine) => Promise<T>, version = {}): Promise<T> {
  await using fake = await fakeEngine((_, response) => reply(response, 200, answer), { version });
  return await call(await connectEngine({ env, endpoint: fake.address }));
}

const info = { Driver: "vfs", NCPU: 1, MemTotal: 1 };

it("only volumes that have all the labels are listed, whatever the engine lists", async () => {
  const volume = (Name: string, Labels: object | null) => ({ Name, Labels, Mountpoint: "/v" });
  const Volumes = [
    volume("both", { a: "x=1", b: "" }),
    volume("other-value", { a: "x", b: "" }),
    volume("one", { a: "x=1" }),
    volume("none", null),
  ];
  const listed = async (labels: string[]) =>
    (await made({ Volumes }, (engine) => engine.listVolumes(labels))).map(({ name }) => name);
  expect(await listed(["a=x=1", "b"])).toEqual(["both"]);
  expect(await listed(["a"])).toEqual(["both", "other-value", "one"]);
  expect(await listed(["constructor"])).toEqual([]);
});

describe("what an engine says of itself", () => {
  it("has an empty value for everything that it leaves out", async () => {
    expect(await made(info, (engine) => engine.info(), { KernelVersion: null })).toEqual({
      ...{ product: "docker", version: "28.0.0", apiVersion: "1.44", arch: "amd64", os: "linux", kernel: "" },
      operatingSystem: "",
      ...{ cgroupVersion: "1", cgroupDriver: "", runtimes: [], defaultRuntime: "", securityOptions: [] },
      ...{ components: {}, storageDriver: "vfs", dockerRootDir: "", cpus: 1, memoryBytes: 1 },
    });
    expect(await made(info, (engine) => engine.health())).toEqual({
      limits: { memory: false, swap: false, cpu: false, pids: false },
      clockSkewMs: 0,
      authorizationPlugins: [],
    });
  });

  it("has the value of everything that it says", async () => {
    const says = {
      ...info,
      ...{ CgroupVersion: "2", CgroupDriver: "systemd", DefaultRuntime: "runc", DockerRootDir: "/d" },
      OperatingSystem: "Docker Desktop",
      SecurityOptions: ["name=seccomp"],
      Plugins: { Authorization: ["opa"] },
      Runtimes: {
        runc: { path: "runc" },
        runsc: { path: "/opt/runsc", runtimeArgs: ["--debug"] },
        shim: { runtimeType: "io.containerd.kata.v2", runtimeArgs: ["-x"] },
        bare: null,
        empty: { path: "", runtimeType: "" },
      },
    };
    expect(await made(says, (engine) => engine.info(), { KernelVersion: "6.1" })).toMatchObject({
      ...{ kernel: "6.1", cgroupVersion: "2", cgroupDriver: "systemd", defaultRuntime: "runc" },
      ...{ dockerRootDir: "/d", securityOptions: ["name=seccomp"], operatingSystem: "Docker Desktop" },
      runtimes: [
        { name: "runc", program: "runc", args: [] },
        { name: "runsc", program: "/opt/runsc", args: ["--debug"] },
        { name: "shim", program: "io.containerd.kata.v2", args: null },
        { name: "bare", program: null, args: null },
        { name: "empty", program: null, args: null },
      ],
    });
    expect((await made(says, (engine) => engine.health())).authorizationPlugins).toEqual(["opa"]);
  });

  it.each([
    ["MemoryLimit", "memory"],
    ["SwapLimit", "swap"],
    ["CpuCfsQuota", "cpu"],
    ["PidsLimit", "pids"],
  ])("has %s for the limit of %s alone", async (name, limit) => {
    const { limits } = await made({ ...info, [name]: true }, (engine) => engine.health());
    expect(Object.entries(limits).filter(([, isThere]) => isThere)).toEqual([[limit, true]]);
  });

  it("has the time of its clock, compared with this machine's", async () => {
    const hour = 3_600_000;
    const SystemTime = new Date(Date.now() + 5 * hour).toISOString();
    const { clockSkewMs } = await made({ ...info, SystemTime }, (engine) => engine.health());
    expect(Math.round(clockSkewMs / hour)).toBe(5);
  });

  it("is Podman when a component says so, and then it has no runtimes to choose from", async () => {
    const Components = [{ Name: "Podman Engine", Version: "4.3.1" }];
    const says = { ...info, Runtimes: { runc: { path: "runc" } } };
    expect(await made(says, (engine) => engine.info(), { Components })).toMatchObject({
      product: "podman",
      runtimes: [],
      components: { "Podman Engine": "4.3.1" },
    });
  });

  it("has the version of a distribution's package where the component names it", async () => {
    const Components = [
      { Name: "runc", Version: "1.1.5", Details: { GitCommit: "1.1.5+ds1-1" } },
      { Name: "containerd", Version: "2.1.0", Details: { GitCommit: "abc" } },
      { Name: "Engine", Version: "28.0.0" },
    ];
    expect((await made(info, (engine) => engine.info(), { Components })).components).toEqual({
      ...{ runc: "1.1.5+ds1-1", containerd: "2.1.0", Engine: "28.0.0" },
    });
  });
});

describe("what an engine says of a container", () => {
  const state = { Running: false, Paused: true, ExitCode: 3, OOMKilled: true, Error: "e", Pid: 9 };

  it("has its state", async () => {
    const says = { Id: "c", Image: "i", State: state };
    expect(await made(says, (engine) => engine.inspectContainer("c"))).toEqual({
      ...{ id: "c", imageId: "i", running: false, paused: true, exitCode: 3 },
      ...{ oomKilled: true, error: "e", pid: 9 },
    });
  });

  it("has how much it wrote, and null where the engine does not say", async () => {
    expect(await made({ SizeRw: 7 }, (engine) => engine.writtenBytes("c"))).toBe(7);
    expect(await made({}, (engine) => engine.writtenBytes("c"))).toBe(null);
  });

  it("has empty values for what its image may leave out", async () => {
    const says = (Config: object) => ({ Id: "c", Image: "i", Config });
    const inspect = (engine: Engine) => engine.inspectCreated("c");
    expect(await made(says({}), inspect)).toEqual({
      ...{ imageId: "i", entrypoint: [], cmd: [], user: "", workingDir: "", env: [], labels: {} },
      ...{ stopSignal: "", healthcheck: [] },
    });
    const Config = {
      ...{ Entrypoint: ["a"], Cmd: ["b"], User: "u", WorkingDir: "/w", Env: ["A=1"], Labels: { l: "1" } },
      ...{ StopSignal: "SIGQUIT", Healthcheck: { Test: ["NONE"] } },
    };
    expect(await made(says(Config), inspect)).toEqual({
      ...{ imageId: "i", entrypoint: ["a"], cmd: ["b"], user: "u", workingDir: "/w", env: ["A=1"] },
      ...{ labels: { l: "1" }, stopSignal: "SIGQUIT", healthcheck: ["NONE"] },
    });
    expect((await made(says({ StopSignal: "15" }), inspect)).stopSignal).toBe("SIGTERM");
    expect((await made(says({ Healthcheck: {} }), inspect)).healthcheck).toEqual([]);
  });

  it("has its names without the slash of the engine, and when it was made", async () => {
    const all = [
      { Id: "a", Names: ["/one", "two/"], Image: "i", State: "running", Labels: { l: "1" }, Created: 60 },
      { Id: "b", Image: "i", State: "exited", Created: 0 },
    ];
    expect(await made(all, (engine) => engine.listContainers(["l"]))).toEqual([
      {
        ...{ id: "a", names: ["one", "two/"], image: "i", state: "running", labels: { l: "1" } },
        createdAt: new Date(60_000),
      },
      { id: "b", names: [], image: "i", state: "exited", labels: {}, createdAt: new Date(0) },
    ]);
  });

  it("has which of its paths are not as in the image, in which way", async () => {
    const all = [0, 1, 2, 3].map((Kind) => ({ Path: `/${Kind}`, Kind }));
    expect(await made(all, (engine) => engine.containerChanges("c"))).toEqual([
      { path: "/0", kind: "changed" },
      { path: "/1", kind: "added" },
      { path: "/2", kind: "deleted" },
      { path: "/3", kind: "changed" },
    ]);
  });
});

describe("what an engine says of a path in a container", () => {
  async function stated(header: string | undefined) {
    await using fake = await fakeEngine((_, response) => {
      if (header !== undefined) response.setHeader("x-docker-container-path-stat", header);
      response.end();
    });
    return await (await connectEngine({ env, endpoint: fake.address })).statPath("c", "/x");
  }
  const encoded = (stat: unknown) => Buffer.from(JSON.stringify(stat)).toString("base64");
  const mtime = "2020-01-02T03:04:05.123456789Z";

  it.each([
    [0o644, false, 0o644],
    [2 ** 31 + 0o755, true, 0o755],
    [2 ** 23 + 0o755, false, 0o4755],
    [2 ** 22 + 0o755, false, 0o2755],
    [2 ** 31 + 2 ** 20 + 0o777, true, 0o1777],
    [2 ** 23 + 2 ** 22 + 2 ** 20, false, 0o7000],
    [2 ** 27, false, 0],
  ])("has the mode %d as one of Linux", async (mode, isDirectory, expected) => {
    expect(await stated(encoded({ mode, mtime }))).toMatchObject({ isDirectory, mode: expected });
  });

  it.each([
    [mtime, Date.parse("2020-01-02T03:04:05.123Z") + 0.456789],
    ["1970-01-01T00:00:01Z", 1000],
    ["1970-01-01T00:00:01.5Z", 1500],
    ["1970-01-01T02:00:01+02:00", 1000],
  ])("has the time %s in milliseconds", async (time, expected) => {
    expect((await stated(encoded({ mode: 0, mtime: time })))?.modifiedMs).toBeCloseTo(expected, 3);
  });

  it.each([
    undefined,
    "",
    encoded({ mode: 1 }),
    encoded({ mode: 1, mtime: "yesterday" }),
    encoded({ mode: 1, mtime: "2020-13-02T03:04:05Z" }),
    encoded(null),
  ])("is null where it is in no such format: %j", async (header) => {
    expect(await stated(header)).toBe(null);
  });
});

describe("what an engine says of images, volumes and its disk", () => {
  it("has an image with everything that it says, or with empty values", async () => {
    const inspect = (engine: Engine) => engine.inspectImage("a");
    const bare = { Id: "i", Size: 5, Architecture: "arm64" };
    const empty = {
      ...{ id: "i", tags: [], sizeBytes: 5, createdAt: new Date(0), lastTaggedAt: null, labels: {} },
      ...{ arch: "arm64", env: [], volumes: [], user: "", workingDir: "" },
    };
    expect(await made(bare, inspect)).toEqual(empty);
    expect(await made({ ...bare, Created: "", Config: {} }, inspect)).toEqual(empty);
    const Config = { Labels: { l: "1" }, Env: ["A=1"], Volumes: { "/v": {} }, User: "u", WorkingDir: "/w" };
    const Metadata = { LastTagTime: "2021-01-01T00:00:00Z" };
    const whole = { ...bare, RepoTags: ["a:b"], Created: "2020-01-01T00:00:00Z", Metadata, Config };
    expect(await made(whole, inspect)).toEqual({
      ...{ id: "i", tags: ["a:b"], sizeBytes: 5, arch: "arm64", labels: { l: "1" }, env: ["A=1"] },
      ...{ volumes: ["/v"], user: "u", workingDir: "/w" },
      ...{ createdAt: new Date("2020-01-01"), lastTaggedAt: new Date("2021-01-01") },
    });
    const never = { ...bare, Metadata: { LastTagTime: "0001-01-01T00:00:00Z" } };
    expect((await made(never, inspect))?.lastTaggedAt).toBe(null);
  });

  it("has the layers of an image", async () => {
    const all = [
      { Created: 1, CreatedBy: "RUN x", Size: 2 },
      { Created: 3, Size: 4 },
    ];
    expect(await made(all, (engine) => engine.imageHistory("a"))).toEqual([
      { createdAt: 1, createdBy: "RUN x", bytes: 2 },
      { createdAt: 3, createdBy: "", bytes: 4 },
    ]);
  });

  it("has volumes with the time they were made, if there is one", async () => {
    const CreatedAt = "2020-01-01T00:00:00Z";
    const Volumes = [
      { Name: "a", Labels: { l: "1" }, Mountpoint: "/a", CreatedAt },
      { Name: "b", Mountpoint: "", CreatedAt: "long ago" },
      { Name: "c", Mountpoint: "" },
    ];
    expect(await made({ Volumes }, (engine) => engine.listVolumes([]))).toEqual([
      { name: "a", labels: { l: "1" }, mountpoint: "/a", createdAt: new Date(CreatedAt) },
      { name: "b", labels: {}, mountpoint: "", createdAt: null },
      { name: "c", labels: {}, mountpoint: "", createdAt: null },
    ]);
    expect(await made({}, (engine) => engine.listVolumes([]))).toEqual([]);
    expect(await made(Volumes[0] ?? {}, (engine) => engine.inspectVolume("a"))).toMatchObject({ name: "a" });
  });

  it("has what is its own on the disk, and null for what it has not counted", async () => {
    const Images = [
      {
        Id: "a",
        RepoTags: ["a:1", "<none>:<none>"],
        Labels: { l: "1" },
        Size: 10,
        SharedSize: 4,
        Containers: 0,
      },
      { Id: "b", Size: 10, SharedSize: -1, Containers: -1 },
      { Id: "c", Size: 10, SharedSize: 11, Containers: 2 },
    ];
    const Volumes = [
      { Name: "a", Labels: { l: "1" }, UsageData: { Size: 7, RefCount: 1 } },
      { Name: "b", UsageData: { Size: -1, RefCount: -1 } },
      { Name: "c" },
    ];
    expect(await made({ Images, Volumes }, (engine) => engine.diskUsage())).toEqual({
      images: [
        { id: "a", tags: ["a:1"], labels: { l: "1" }, ownBytes: 6, containers: 0 },
        { id: "b", tags: [], labels: {}, ownBytes: 10, containers: null },
        { id: "c", tags: [], labels: {}, ownBytes: 0, containers: 2 },
      ],
      volumes: [
        { name: "a", labels: { l: "1" }, ownBytes: 7, containers: 1 },
        { name: "b", labels: {}, ownBytes: 0, containers: null },
        { name: "c", labels: {}, ownBytes: 0, containers: null },
      ],
    });
    expect(await made({}, (engine) => engine.diskUsage())).toEqual({ images: [], volumes: [] });
  });
});

it("what happened to a container is read line by line, with an exit code only where it is a number", async () => {
  const event = (Action: string, exitCode?: string, timeNano?: number) =>
    JSON.stringify({
      Action,
      timeNano,
      ...(exitCode === undefined ? {} : { Actor: { Attributes: { exitCode } } }),
    });
  const lines = [event("create"), event("die", "137", 5e9), "", event("die", "1000"), event("die", "x1")];
  await using fake = await fakeEngine((_, response) => response.end(`${lines.join("\n")}\n`));
  const engine = await connectEngine({ env, endpoint: fake.address });
  expect(await engine.containerEvents("c")).toEqual([
    { action: "create", atMs: 0, exitCode: null },
    { action: "die", atMs: 5000, exitCode: 137 },
    { action: "die", atMs: 0, exitCode: null },
    { action: "die", atMs: 0, exitCode: null },
  ]);
});
