import { readFileSync, statSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { ContainerBody } from "../../../../../src/sandbox/docker/engine-types.js";
import { planMemory } from "../../../../../src/sandbox/docker/podman/memory-volumes.js";
import { withSeccompFile } from "../../../../../src/sandbox/docker/podman/podman-containers.js";
import { asPodmanSpec, type PodmanSpec } from "../../../../../src/sandbox/docker/podman/podman-spec.js";

const limits = { Memory: 4096, MemorySwap: 8192, NanoCpus: 1_500_000_000, PidsLimit: 7 };

function body(host: object = {}, more: object = {}): ContainerBody {
  return {
    ...{ Image: "i", Entrypoint: ["/e"], Cmd: ["a", "b"], Env: [], Labels: { l: "1" } },
    ...{ AttachStdin: true, AttachStdout: true, AttachStderr: true, OpenStdin: true, Tty: false },
    ...more,
    HostConfig: {
      ...{ AutoRemove: true, Privileged: false, ReadonlyRootfs: false, NetworkMode: "none" },
      ...{ CgroupnsMode: "private", CapDrop: ["ALL"], CapAdd: [], SecurityOpt: [], Mounts: [], Tmpfs: {} },
      ...{ LogConfig: { Type: "none", Config: {} }, RestartPolicy: { Name: "no" } },
      ...host,
    },
  };
}

function specOf(host: object = {}, more: object = {}): PodmanSpec {
  const one = body(host, more);
  return asPodmanSpec(one, { name: "n", imageId: "sha256:1", memory: planMemory(one.HostConfig.Tmpfs, "n") });
}

describe("a request in Podman's own words", () => {
  it("names the image by its id, so that no other one is found by the same name", () => {
    expect(specOf()).toMatchObject({ name: "n", image: "sha256:1", raw_image_name: "i" });
  });

  it("says what runs, as whom and with which variables", () => {
    const more = { User: "1:2", WorkingDir: "/w", Hostname: "h", StopSignal: "SIGKILL" };
    const Env = ["A=1=2", "B=", "C"];
    expect(specOf({}, { ...more, Env, Healthcheck: { Test: ["NONE"] } })).toMatchObject({
      ...{ entrypoint: ["/e"], command: ["a", "b"], user: "1:2", work_dir: "/w", hostname: "h" },
      ...{ env: { A: "1=2", B: "" }, unsetenv: ["C"], labels: { l: "1" }, stdin: true, terminal: false },
      ...{
        stop_signal: 9,
        healthconfig: { Test: ["NONE"] },
        remove: true,
        restart_policy: "no",
        init: false,
      },
      ...{ systemd: "false", log_configuration: { driver: "none" } },
    });
  });

  it("has every limit, and none that is not asked for", () => {
    const Ulimits = [{ Name: "core", Soft: 1, Hard: 2 }];
    const host = { ...limits, Ulimits, ShmSize: 5, Sysctls: { s: "1" } };
    expect(specOf(host)).toMatchObject({
      resource_limits: {
        memory: { limit: 4096, swap: 8192 },
        cpu: { period: 100_000, quota: 150_000 },
        pids: { limit: 7 },
      },
      ...{ r_limits: [{ type: "core", soft: 1, hard: 2 }], shm_size: 5, sysctl: { s: "1" } },
    });
    expect(specOf({ Memory: 0, MemorySwap: 0, PidsLimit: 0 })).toMatchObject({
      ...{ resource_limits: {}, r_limits: [], sysctl: {} },
    });
  });

  it("has the privileges that are asked for, and no namespace of the host unless that is", () => {
    const own = { nsmode: "private" };
    expect(specOf()).toMatchObject({
      ...{
        privileged: false,
        cap_drop: ["ALL"],
        cap_add: [],
        no_new_privileges: false,
        mask: [],
        devices: [],
      },
      ...{ netns: { nsmode: "none" }, pidns: own, utsns: own, ipcns: own, cgroupns: own },
    });
    const SecurityOpt = ["no-new-privileges", 'seccomp={"x":"="}', "apparmor=unconfined"];
    const device = { PathOnHost: "/dev/a", PathInContainer: "/dev/b", CgroupPermissions: "r" };
    const host = {
      PidMode: "host",
      UTSMode: "host",
      NetworkMode: "host",
      MaskedPaths: ["/x", "/y"],
      GroupAdd: ["7"],
    };
    expect(specOf({ ...host, SecurityOpt, CapDrop: [], CapAdd: ["CHOWN"], Devices: [device] })).toMatchObject(
      {
        ...{ pidns: { nsmode: "host" }, utsns: { nsmode: "host" }, netns: { nsmode: "host" } },
        ...{
          cap_drop: [],
          cap_add: ["CHOWN"],
          mask: ["/x", "/y"],
          groups: ["7"],
          devices: [{ path: "/dev/a:/dev/b:r" }],
        },
        ...{ no_new_privileges: true, apparmor_profile: "unconfined", seccomp_profile_path: '{"x":"="}' },
      },
    );
  });

  it("hides what Podman does not make read-only, and opens what it need not", () => {
    const ReadonlyPaths = ["/proc/sys", "/proc/1/oom_score_adj", "/proc/bus", "/dev"];
    const { mask, unmask } = specOf({ MaskedPaths: ["/x"], ReadonlyPaths });
    expect(mask).toEqual(["/x", "/proc/1/oom_score_adj"]);
    expect(unmask).toEqual(["/proc/fs", "/proc/irq", "/proc/sysrq-trigger"]);
    expect(specOf()).toMatchObject({ mask: [], unmask: [] });
  });

  it("shows the host's names and name servers to no container without a network", () => {
    expect(specOf()).toMatchObject({ use_image_hosts: true, use_image_resolve_conf: true });
    expect(specOf({ NetworkMode: "bridge" })).toMatchObject({
      ...{ use_image_hosts: false, use_image_resolve_conf: false, base_hosts_file: "none" },
    });
  });

  it("mounts directories with what is mounted below them, and volumes", () => {
    const Mounts = [
      {
        Type: "bind",
        Source: '/a,"\n',
        Target: "/b",
        ReadOnly: true,
        BindOptions: { Propagation: "rprivate" },
      },
      { Type: "volume", Source: "v", Target: "/c", ReadOnly: true, VolumeOptions: { NoCopy: true } },
      { Type: "volume", Source: "w", Target: "/d", ReadOnly: false },
    ];
    expect(specOf({ Mounts }, { Volumes: { "/e": {} } })).toMatchObject({
      mounts: [{ destination: "/b", type: "bind", source: '/a,"\n', options: ["ro", "rbind", "rprivate"] }],
      volumes: [
        { Name: "v", Dest: "/c", Options: ["ro", "nocopy"] },
        { Name: "w", Dest: "/d", Options: ["rw"] },
        { Name: "", Dest: "/e", Options: [] },
      ],
    });
  });

  it("mounts terminals of its own without a volume", () => {
    const o = "nosuid,noexec,newinstance,max=64";
    const DriverConfig = { Name: "local", Options: { type: "devpts", device: "devpts", o } };
    const terminals = {
      Type: "volume",
      Target: "/dev/pts",
      ReadOnly: false,
      VolumeOptions: { DriverConfig },
    };
    const spec = specOf({ ReadonlyPaths: ["/dev"], Mounts: [terminals] });
    expect(spec.volumes).toEqual([]);
    expect(spec.mounts.map(({ destination }) => destination)).toEqual(["/dev", "/dev/mqueue", "/dev/pts"]);
    expect(spec.mounts.at(-1)).toEqual({
      ...{ destination: "/dev/pts", type: "devpts", source: "devpts" },
      options: ["nosuid", "noexec", "newinstance", "max=64"],
    });
  });

  it("lets Podman open nothing for writing in a container whose files are read-only, and closes /dev", () => {
    const closed = { ReadonlyRootfs: true, ReadonlyPaths: ["/dev"] };
    const { read_only_filesystem, read_write_tmpfs, mounts } = specOf(closed);
    expect([read_only_filesystem, read_write_tmpfs]).toEqual([true, false]);
    expect(mounts.map(({ destination }) => destination)).toEqual(["/dev", "/dev/mqueue"]);
    expect(mounts[0]?.options).toContain("ro");
    expect(specOf()).toMatchObject({ read_only_filesystem: false, read_write_tmpfs: false, mounts: [] });
  });

  it.each<[object, RegExp]>([
    [{ Runtime: "runsc" }, /runtime runsc/],
    [{ Dns: ["127.0.0.1"] }, /name server/],
  ])("is refused when Podman would not do what it says: %j", (host, message) => {
    const refusal = expect.objectContaining({
      code: "policy.not-enforced",
      message: expect.stringMatching(message),
      hint: expect.stringMatching(/\w/),
    });
    expect(() => specOf(host)).toThrow(refusal);
  });
});

it("has a volume in memory in place of each writable mount, with its owner and its limits", () => {
  const Tmpfs = {
    "/a": "rw,nosuid,size=8193,mode=755",
    "/ro": "ro,nodev,size=4096,nr_inodes=16",
    "/b": "rw,size=3m,nr_inodes=9",
  };
  expect(planMemory(Tmpfs, "n").volumes.map(({ Name, driver }) => [Name, driver])).toEqual([
    ["n-memory-0", { type: "tmpfs", device: "tmpfs", o: "rw,nosuid,nr_blocks=3,mode=755" }],
    ["n-memory-1", { type: "tmpfs", device: "tmpfs", o: "rw,nr_blocks=768,nr_inodes=9" }],
  ]);
  const { mounts, volumes } = specOf({ Tmpfs });
  expect(volumes).toEqual([
    { Name: "n-memory-0", Dest: "/a", Options: ["rw", "nosuid", "nocopy"] },
    { Name: "n-memory-1", Dest: "/b", Options: ["rw", "nocopy"] },
  ]);
  expect(mounts).toEqual([
    {
      ...{ destination: "/ro", type: "tmpfs", source: "tmpfs" },
      options: ["ro", "nodev", "size=4096", "notmpcopyup"],
    },
  ]);
});

describe("a seccomp profile", () => {
  it("is in a file that only this user can read, while the container is created", async () => {
    let file = "";
    const id = await withSeccompFile(specOf({ SecurityOpt: ['seccomp={"x":1}'] }), async (spec) => {
      file = spec.seccomp_profile_path ?? "";
      expect(readFileSync(file, "utf8")).toBe('{"x":1}');
      expect(statSync(file).mode & 0o777).toBe(0o600);
      return "id";
    });
    expect(id).toBe("id");
    expect(() => statSync(file)).toThrow("ENOENT");
  });

  it("stays as it is where it is no text of a profile", async () => {
    const given = specOf({ SecurityOpt: ["seccomp=unconfined"] });
    expect(given.seccomp_profile_path).toBe("unconfined");
    expect(await withSeccompFile(given, async (taken) => taken)).toBe(given);
  });
});
