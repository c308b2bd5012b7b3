import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { readEnvironment } from "../../src/lib/env.js";
import { readHostProcesses } from "../../src/lib/owner.js";
import { packageRoot } from "../../src/package-root.js";
import { connectEngine } from "../../src/sandbox/docker/connect.js";
import { memoryLabel } from "../../src/sandbox/docker/podman/memory-volumes.js";
import { volumeContainer } from "../../src/sandbox/images/toolbox-volume.js";
import { recordedNow } from "../../src/sandbox/sandbox-records.js";
import { sweep } from "../../src/sandbox/sweep.js";
import { faultyEngine, once as onFirst } from "../support/faulty-engine.js";
import { becomeHostUser, giveToHostUser, OWNING_USERS } from "../support/host-users.js";
import { openBreakable, type TestSandboxOptions } from "../support/open-sandbox.js";
import { hasPodman, type PodmanEngine, podmanEngine, whyNoPodman } from "../support/podman-engine.js";
import { withReason } from "../support/skip-reasons.js";

const emptyContainer = () =>
  volumeContainer({ image: "brig/base:latest", argv: ["/nothing"], labels: {}, volume: null });

const holder = fileURLToPath(new URL("../fixtures/hold-sandbox.ts", import.meta.url));
const run = promisify(execFile);

describe.skipIf(!hasPodman)(withReason("a sandbox on Podman", whyNoPodman), () => {
  let podman: PodmanEngine;
  let directory: string;

  beforeAll(async () => {
    podman = await podmanEngine(["base", "toolbox"]);
    directory = await mkdtemp(join(tmpdir(), "brig-test-"));
  });

  afterAll(async () => {
    await podman?.[Symbol.asyncDispose]();
    await rm(directory, { recursive: true, force: true });
  });

  const volumes = async () => (await podman.engine.listVolumes([memoryLabel])).map(({ name }) => name);

  async function open(options: TestSandboxOptions = {}) {
    const workspace = options.workspace ?? (await mkdtemp(join(directory, "workspace-")));
    if (options.workspace === undefined) await giveToHostUser(workspace);
    return await openBreakable({ engine: podman.engine, workspace, ...options });
  }

  describe.each(OWNING_USERS)("for uid $uid", (user) => {
    it.each(["read-only", "workspace-write", "danger-full-access"] as const)(
      "keeps all that %s promises, and leaves nothing behind",
      async (mode) => {
        becomeHostUser(user);
        await using sandbox = await open({ mode });
        expect(sandbox.proof.differences).toEqual([]);
        expect(sandbox.proof.notProvable).toEqual([]);
        const { exitCode } = await sandbox.exec(["sh", "-c", "echo x > file"]);
        expect(exitCode).toBe(mode === "read-only" ? 2 : 0);
        expect(await volumes()).not.toEqual([]);
        await sandbox.close();
        expect(await volumes()).toEqual([]);
        expect(await podman.podman("ps", "--all", "--quiet")).toBe("");
      },
    );
  });

  it("limits how many files and bytes there may be in memory", async () => {
    await using sandbox = await open();
    const many = await sandbox.exec([...["bash", "-c", "for i in {1..5000}; do : > /run/$i || exit; done"]]);
    expect(many.stderr).toContain("No space left on device");
    const large = await sandbox.exec(["sh", "-c", "rm -r /run/*; head -c 100M /dev/zero > /run/large"]);
    expect(large.stderr).toContain("No space left on device");
  });

  it("opens no directory for writing that the policy does not name", async () => {
    await using sandbox = await open({ mode: "read-only" });
    const { stderr } = await sandbox.exec(["touch", "/var/tmp/file", "/etc/file"]);
    expect(stderr.match(/Read-only file system/g)).toHaveLength(2);
  });

  it("shows what is mounted below the workspace", async () => {
    const workspace = await mkdtemp(join(directory, "workspace-"));
    const data = join(workspace, "data");
    await mkdir(data);
    await run("mount", ["-t", "tmpfs", "none", data]);
    try {
      await writeFile(join(data, "there"), "");
      await using sandbox = await open({ workspace });
      expect((await sandbox.exec(["ls", "data"])).stdout).toBe("there\n");
    } finally {
      await run("umount", [data]);
    }
  });

  it("goes on over another stream when its stream breaks", async () => {
    await using sandbox = await open();
    const sleeping = sandbox.exec(["sh", "-c", "sleep 1; echo still here"]);
    sandbox.link.breakStream();
    expect((await sleeping).stdout).toBe("still here\n");
  });

  it("refuses a runtime, which Podman would ignore", async () => {
    await expect(open({ runtime: "runsc" })).rejects.toMatchObject({
      code: "policy.not-enforced",
      message: expect.stringContaining("cannot run a single container with the runtime runsc"),
    });
    expect(await volumes()).toEqual([]);
  });

  it("reaches the hosts of an allow-list by their names and no other, and is shown none of the host's names", async () => {
    const server = createServer((_, response) => response.end("reached\n"));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    try {
      await using sandbox = await open({
        network: `allowlist:host.internal:${port},allowed.test`,
        resolve: async (name) => (name.endsWith(".test") ? ["127.0.0.1"] : []),
      });
      expect(sandbox.proof.differences).toEqual([]);
      const get = (name: string) =>
        sandbox.exec(["curl", "-sS", "--noproxy", "*", "-w", "%{http_code}", `http://${name}:${port}/`]);
      expect(await get("host.internal")).toMatchObject({ exitCode: 0, stdout: "reached\n200" });
      expect((await get("other.test")).stdout).not.toContain("reached");
      expect(await sandbox.exec(["getent", "hosts", "allowed.test"])).toMatchObject({ exitCode: 0 });
      const { stdout } = await sandbox.exec(["cat", "/etc/resolv.conf", "/etc/hosts"]);
      const files = ["resolv.conf", "hosts"].map((name) =>
        readFile(join(packageRoot, "images/toolbox", name), "utf8"),
      );
      expect(stdout).toBe((await Promise.all(files)).join(""));
    } finally {
      server.close();
    }
  });

  it.each(["work,readonly=false", 'work"quoted', "work:ro"])("has a workspace called %j", async (name) => {
    const workspace = join(directory, name);
    await mkdir(workspace);
    await using sandbox = await open({ workspace });
    expect(await sandbox.exec(["touch", "file"])).toMatchObject({ exitCode: 0 });
    expect(await readdir(workspace)).toContain("file");
  });

  it("lets no command replace a device", async () => {
    await using sandbox = await open();
    const { stderr } = await sandbox.exec([
      "sh",
      "-c",
      "rm /dev/null; touch /dev/file; mkdir /dev/shm/directory",
    ]);
    expect(stderr.match(/Read-only file system/g)).toHaveLength(2);
  });

  it("loses its container and its volumes to brig gc after a killed program", async () => {
    const home = await mkdtemp(join(directory, "home-"));
    const workspace = await mkdtemp(join(directory, "workspace-"));
    const child = spawn(process.execPath, ["--import", "tsx", holder, "600", workspace], {
      env: { ...process.env, BRIG_HOME: home, DOCKER_HOST: podman.engine.endpoint },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const ended = once(child, "exit");
    await Promise.race([once(child.stdout, "data"), ended]);
    child.kill("SIGKILL");
    await ended;
    expect(await volumes()).not.toEqual([]);
    await sweep(podman.engine, {
      now: new Date(),
      processes: await readHostProcesses(hostname()),
      records: recordedNow(home),
      sessionVolumeLabels: [memoryLabel],
    });
    expect(await volumes()).toEqual([]);
    expect(await podman.podman("ps", "--all", "--quiet")).toBe("");
  });

  describe("a container with volumes in memory", () => {
    const container = (host: object = {}) =>
      Object.assign(emptyContainer(), {
        HostConfig: { ...emptyContainer().HostConfig, Tmpfs: { "/a": "rw,size=4096,mode=700" }, ...host },
      });

    it("has none of them left when one of them cannot be made", async () => {
      const Tmpfs = { "/a": "rw,mode=700", "/b": "rw,uid=nobody" };
      await expect(podman.engine.createContainer(container({ Tmpfs }))).rejects.toMatchObject({
        message: expect.stringContaining("cannot create the volume"),
      });
      expect(await volumes()).toEqual([]);
    });

    it("has none of them left when it cannot be made itself", async () => {
      const SecurityOpt = ["seccomp=/missing"];
      await expect(podman.engine.createContainer(container({ SecurityOpt }))).rejects.toMatchObject({
        message: expect.stringContaining("cannot create a container"),
      });
      expect(await volumes()).toEqual([]);
    });

    it("loses them when another process removes it, and no volume that was only mounted in it", async () => {
      const other = await connectEngine({ env: readEnvironment(), endpoint: podman.engine.endpoint });
      await other.createVolume("brig-other-memory-0", { [memoryLabel]: "/b" });
      const Mounts = [{ Type: "volume", Source: "brig-other-memory-0", Target: "/b", ReadOnly: false }];
      const id = await podman.engine.createContainer(container({ Mounts }), { name: "brig-given" });
      expect((await volumes()).toSorted()).toEqual(["brig-given-memory-0", "brig-other-memory-0"]);
      await other.removeContainer(id);
      expect(await volumes()).toEqual(["brig-other-memory-0"]);
      await other.removeVolume("brig-other-memory-0");
    });

    it("loses its own when it is removed", async () => {
      const first = await podman.engine.createContainer(container(), { name: "brig-given" });
      const second = await podman.engine.createContainer(container());
      const names = await volumes();
      expect(names.toSorted()).toEqual([
        expect.stringMatching(/^brig-[0-9a-f]{16}-memory-0$/),
        "brig-given-memory-0",
      ]);
      await podman.engine.removeContainer(first);
      expect(await volumes()).toEqual(names.filter((name) => name !== "brig-given-memory-0"));
      const removed = podman.engine.waitRemoved(second);
      await podman.podman("rm", second);
      await removed;
      expect(await volumes()).toEqual([]);
    });
  });

  describe("a start whose create request", () => {
    const create = /^POST \/containers\/create/;

    it.each([
      ["is answered, but the answer is lost", "answer-lost"],
      ["does not arrive", "cut"],
    ] as const)("%s, leaves neither a container nor volumes", async (_, fate) => {
      await (await open()).close();
      await using faulty = await faultyEngine(podman.engine);
      faulty.decide(onFirst(create, fate));
      await expect(open({ engine: faulty.engine })).rejects.toMatchObject({ code: "engine.unreachable" });
      expect(await podman.podman("ps", "--all", "--quiet")).toBe("");
      expect(await volumes()).toEqual([]);
    });
  });

  it("ends a call with what happened when the service is killed, and its container with its lease", async () => {
    await using other = await podmanEngine(["base", "toolbox"]);
    const sandbox = await open({ engine: other.engine, leaseSeconds: 3 });
    const spawned = await sandbox.spawn(["sleep", "600"]);
    const gone = { code: "sandbox.gone", reason: "engine" };
    const running = expect(spawned.exit).rejects.toMatchObject(gone);
    await other.killService();
    await running;
    await expect(sandbox.exec(["true"])).rejects.toMatchObject(gone);
    await expect.poll(() => other.podman("ps", "--all", "--quiet")).toBe("");
    await sandbox.close().catch(() => undefined);
  });

  it("lists only volumes that have all of the labels", async () => {
    const names = ["brig-test-both", "brig-test-one"];
    onTestFinished(async () => {
      for (const name of names) await podman.engine.removeVolume(name);
    });
    await podman.engine.createVolume("brig-test-both", { "brig.test-a": "x=1", "brig.test-b": "" });
    await podman.engine.createVolume("brig-test-one", { "brig.test-a": "x=1" });
    const listed = async (labels: string[]) =>
      (await podman.engine.listVolumes(labels)).map(({ name }) => name).toSorted();
    expect(await listed(["brig.test-a=x=1"])).toEqual(names);
    expect(await listed(["brig.test-a", "brig.test-b"])).toEqual(["brig-test-both"]);
  });

  it("says that an image is missing before it makes anything", async () => {
    await expect(
      podman.engine.createContainer({ ...emptyContainer(), Image: "no/such:image" }),
    ).rejects.toMatchObject({
      code: "image.missing",
      message: "cannot create a container from no/such:image: there is no such image",
    });
    expect(await volumes()).toEqual([]);
  });

  it("takes a name for an image", async () => {
    const { engine } = podman;
    const [image] = await engine.listImages(["brig.image=toolbox"]);
    await engine.tagImage(image?.id ?? "", "brig-test/named:one");
    expect((await engine.inspectImage("brig-test/named:one"))?.id).toBe(image?.id);
  });
});
