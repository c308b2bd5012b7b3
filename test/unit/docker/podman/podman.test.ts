import { readFileSync, statSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { ContainerBody, Engine } from "../../../../src/docker/engine-types.js";
import { createMemoryVolumes } from "../../../../src/docker/podman/memory-volumes.js";
import { asPodmanTakesIt } from "../../../../src/docker/podman/podman-body.js";
import { podmanContainers } from "../../../../src/docker/podman/podman-containers.js";
import { withSeccompFile } from "../../../../src/docker/podman/seccomp-file.js";

function body(host: object = {}): ContainerBody {
  return {
    Image: "i",
    Labels: { l: "1" },
    HostConfig: { Mounts: [], SecurityOpt: [], Tmpfs: {}, ReadonlyRootfs: false, ...host },
  } as unknown as ContainerBody;
}

/** Keeps the volumes that there are, and refuses to make the one that ends in `refused`. */
function volumeStore({ refused = "none" } = {}) {
  const made = new Map<string, { labels: object; options: object | undefined }>();
  const engine: Pick<Engine, "createVolume" | "removeVolume" | "listVolumes"> = {
    async createVolume(name, labels, options) {
      if (name.endsWith(refused)) throw new Error(`no ${name}`);
      made.set(name, { labels, options });
      return { name, labels, mountpoint: "", createdAt: null };
    },
    async removeVolume(name) {
      made.delete(name);
    },
    listVolumes: async () => [],
  };
  return { made, engine };
}

describe("a request that Podman gets", () => {
  it("has the hidden paths where Podman looks for them", () => {
    const { HostConfig } = asPodmanTakesIt(body({ SecurityOpt: ["a"], MaskedPaths: ["/x", "/y"] }));
    expect(HostConfig.SecurityOpt).toEqual(["a", "mask=/x:/y"]);
    expect(asPodmanTakesIt(body({ SecurityOpt: ["a"] })).HostConfig.SecurityOpt).toEqual(["a"]);
  });

  it("closes the directories that Podman would open in a read-only container, but those that are asked for", () => {
    const { Tmpfs } = asPodmanTakesIt(body({ ReadonlyRootfs: true, Tmpfs: { "/tmp": "rw" } })).HostConfig;
    expect(Object.keys(Tmpfs).sort()).toEqual(["/dev/shm", "/run", "/tmp", "/var/tmp"]);
    expect(Tmpfs["/tmp"]).toBe("rw");
    for (const path of ["/run", "/var/tmp", "/dev/shm"]) {
      const options = Tmpfs[path]?.split(",") ?? [];
      expect(options).toEqual(expect.arrayContaining(["ro", "nosuid", "nodev", "noexec"]));
    }
    expect(asPodmanTakesIt(body()).HostConfig.Tmpfs).toEqual({});
  });

  it("has its mounts without the options of Docker", () => {
    const Mounts = [{ Type: "bind", Source: "/a", Target: "/b", BindOptions: { Propagation: "rprivate" } }];
    expect(asPodmanTakesIt(body({ Mounts })).HostConfig.Mounts).toEqual([
      { Type: "bind", Source: "/a", Target: "/b" },
    ]);
  });

  it.each<[object, RegExp]>([
    [{ Runtime: "runsc" }, /runtime runsc/],
    [{ Dns: ["127.0.0.1"] }, /name server/],
    ...[",", '"', "\r", "\n"].flatMap((odd): [object, RegExp][] => [
      [{ Mounts: [{ Type: "bind", Source: `/a${odd}b`, Target: "/b" }] }, /cannot mount/],
      [{ Mounts: [{ Type: "bind", Source: "/a", Target: `/${odd}` }] }, /cannot mount/],
    ]),
  ])("is refused when Podman would not do what it says: %j", (host, message) => {
    const refusal = expect.objectContaining({
      code: "policy.not-enforced",
      message: expect.stringMatching(message),
      hint: expect.stringMatching(/\w/),
    });
    expect(() => asPodmanTakesIt(body(host))).toThrow(refusal);
  });
});

describe("a volume in memory", () => {
  const Tmpfs = {
    "/a": "rw,nosuid,size=8193,mode=755",
    "/ro": "ro,nodev,size=4096,nr_inodes=16",
    "/b": "rw,size=4096,nr_inodes=9",
  };

  it("takes the place of each writable mount, with its owner and its limits", async () => {
    const { made, engine } = volumeStore();
    const { body: changed, volumes } = await createMemoryVolumes(body({ Tmpfs }), { name: "n", engine });
    expect(volumes).toEqual(["n-memory-0", "n-memory-1"]);
    expect(Object.fromEntries(made)).toEqual({
      "n-memory-0": {
        labels: { l: "1", "brig.memory": "/a" },
        options: { type: "tmpfs", device: "tmpfs", o: "rw,nosuid,nr_blocks=3,mode=755" },
      },
      "n-memory-1": {
        labels: { l: "1", "brig.memory": "/b" },
        options: { type: "tmpfs", device: "tmpfs", o: "rw,nr_blocks=1,nr_inodes=9" },
      },
    });
    expect(changed.HostConfig).toMatchObject({
      Tmpfs: { "/ro": "ro,nodev,size=4096,notmpcopyup" },
      Binds: ["n-memory-0:/a:rw,nosuid,nocopy", "n-memory-1:/b:rw,nocopy"],
    });
    expect(Object.keys(changed.HostConfig.Tmpfs)).toEqual(["/ro"]);
  });

  it("is removed again when another one cannot be made", async () => {
    const { made, engine } = volumeStore({ refused: "memory-1" });
    const failed = createMemoryVolumes(body({ Tmpfs }), { name: "n", engine });
    await expect(failed).rejects.toThrow("no n-memory-1");
    expect([...made.keys()]).toEqual([]);
  });

  it("is removed with its container, and also when the container cannot be made", async () => {
    const { made, engine } = volumeStore();
    const names: (string | undefined)[] = [];
    let fails = false;
    const calls = podmanContainers(
      {
        async createContainer(_, options) {
          names.push(options?.name);
          if (fails) throw new Error("no container");
          return `id-${names.length}`;
        },
        removeContainer: async () => undefined,
        waitRemoved: async () => undefined,
      },
      engine,
    );
    const first = await calls.createContainer(body({ Tmpfs }), { name: "given" });
    const second = await calls.createContainer(body({ Tmpfs }));
    expect(names[0]).toBe("given");
    expect(names[1]).toMatch(/^brig-[0-9a-f]{16}$/);
    expect(made.size).toBe(4);
    await calls.removeContainer(first);
    expect([...made.keys()]).toEqual([`${names[1]}-memory-0`, `${names[1]}-memory-1`]);
    await calls.waitRemoved(second);
    expect(made.size).toBe(0);
    fails = true;
    await expect(calls.createContainer(body({ Tmpfs }))).rejects.toThrow("no container");
    expect(made.size).toBe(0);
  });
});

describe("a seccomp profile", () => {
  it("is in a file that only this user can read, while the container is created", async () => {
    let file = "";
    const id = await withSeccompFile(
      body({ SecurityOpt: ["a", 'seccomp={"x":1}'] }),
      async ({ HostConfig }) => {
        expect(HostConfig.SecurityOpt[0]).toBe("a");
        file = HostConfig.SecurityOpt[1]?.replace(/^seccomp=/, "") ?? "";
        expect(readFileSync(file, "utf8")).toBe('{"x":1}');
        expect(statSync(file).mode & 0o777).toBe(0o600);
        return "id";
      },
    );
    expect(id).toBe("id");
    expect(() => statSync(file)).toThrow("ENOENT");
  });

  it("stays as it is where it is no text of a profile", async () => {
    const given = body({ SecurityOpt: ["seccomp=unconfined"] });
    expect(await withSeccompFile(given, async (taken) => taken)).toBe(given);
  });
});
