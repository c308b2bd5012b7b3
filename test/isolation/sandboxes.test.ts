import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { describe, expect } from "vitest";
import type { ContainerBody, Engine } from "../../src/sandbox/docker/engine-types.js";
import { LABELS } from "../../src/sandbox/labels.js";
import { forEachHostUser } from "../support/each-host-user.js";
import { call, testEngine } from "../support/engine.js";
import { giveToHostUser } from "../support/host-users.js";
import { differs, isGvisor, titled } from "../support/runtime-differences.js";
import { openTestSandbox, sandboxTest } from "../support/sandbox.js";
import { testLabels } from "../support/test-run.js";

const run = promisify(execFile);

/** The engine of this machine, which makes another container than it was asked for. */
async function engineThatMakes(
  change: (body: ContainerBody) => void,
): Promise<Engine & { started: string[] }> {
  const engine = await testEngine();
  const started: string[] = [];
  const createContainer: Engine["createContainer"] = async (body, options) => {
    const changed = structuredClone(body);
    change(changed);
    return await engine.createContainer(changed, options);
  };
  const startContainer: Engine["startContainer"] = async (id) => {
    started.push(id);
    await engine.startContainer(id);
  };
  return Object.assign(Object.create(engine) as Engine, { createContainer, startContainer, started });
}

/** A main program that leaves a file, as one that an engine or an image slips in would. */
const slipIn = (directory: string) => (body: ContainerBody) => {
  body.Entrypoint = ["sh"];
  body.Cmd = ["-c", `touch ${directory}/ran; sleep 600`];
};

describe("a container that is not what was asked for", () => {
  sandboxTest("is not started if it has another program, and nothing of it ran", async ({ directory }) => {
    const engine = await engineThatMakes(slipIn(directory));
    await expect(openTestSandbox({ engine, workspace: directory })).rejects.toMatchObject({
      code: "policy.not-enforced",
    });
    expect(engine.started).toEqual([]);
    expect(await readdir(directory)).toEqual([]);
    expect(await containersOn(directory)).toEqual([]);
  });

  sandboxTest("would have run it: the control of the test above", async ({ directory }) => {
    const engine = await testEngine();
    const Mounts = [{ Type: "bind" as const, Source: directory, Target: directory, ReadOnly: false }];
    const body = {
      Image: "brig/base",
      Env: [],
      Labels: testLabels(),
      HostConfig: { Mounts, NetworkMode: "none" },
    };
    slipIn(directory)(body as unknown as ContainerBody);
    const id = await engine.createContainer(body as unknown as ContainerBody);
    try {
      await engine.startContainer(id);
      await expect.poll(() => existsSync(join(directory, "ran"))).toBe(true);
    } finally {
      await engine.removeContainer(id);
    }
  });

  sandboxTest.skipIf(isGvisor).for<[string, (config: ContainerBody["HostConfig"]) => void]>([
    ["its capabilities", (config) => (config.CapDrop = [])],
    [
      "no filter of system calls",
      (config) => (config.SecurityOpt = ["no-new-privileges", "seccomp=unconfined"]),
    ],
    ["a network", (config) => (config.NetworkMode = "bridge")],
  ])(
    "with %s is refused once it runs, before any command, and is gone [not on gVisor: brig cannot prove as much of a container there]",
    async ([, change], { directory }) => {
      const engine = await engineThatMakes((body) => {
        body.NetworkDisabled = false;
        change(body.HostConfig);
      });
      await expect(openTestSandbox({ engine, workspace: directory })).rejects.toMatchObject({
        code: "policy.not-enforced",
      });
      expect(engine.started).toHaveLength(1);
      expect(await readdir(directory)).toEqual([]);
      expect(await containersOn(directory)).toEqual([]);
    },
  );
});

async function containersOn(directory: string): Promise<string[]> {
  const containers = await (await testEngine()).listContainers([LABELS.placeholders]);
  return containers.filter(({ labels }) => JSON.stringify(labels).includes(directory)).map(({ id }) => id);
}

describe("what brig asks of the engine while a sandbox runs", () => {
  forEachHostUser((userTest, { uid }) => {
    userTest("is run as a user whom no command is, without privileges", async ({ open }) => {
      const engine = await testEngine();
      const ids: string[] = [];
      const openExec: Engine["openExec"] = async (...request) => {
        const opened = await engine.openExec(...request);
        ids.push(opened.id);
        return opened;
      };
      const sandbox = await open({ engine: Object.assign(Object.create(engine) as Engine, { openExec }) });
      sandbox.link.breakStream();
      await sandbox.exec(["true"]);
      expect(ids.length).toBeGreaterThan(0);
      for (const id of ids) {
        const path = `/exec/${id}/json`;
        const answer = await text(await call(new URL(engine.endpoint).pathname, { method: "GET", path }));
        expect(JSON.parse(answer).ProcessConfig).toMatchObject({
          user: expect.stringMatching(new RegExp(`^(?!(?:0|${uid}):)[0-9]+:[0-9]+$`)),
          privileged: false,
        });
      }
    });
  });
});

describe("a working directory", () => {
  sandboxTest(
    "that is a descriptor of another process leads to no directory of the host",
    async ({ open, directory }) => {
      await writeFile(join(directory, "outside"), "x");
      const sandbox = await open();
      const look = `for up in . .. ../.. ../../.. ../../../../../../../..; do cat "$up${directory}/outside"; done`;
      const places = Array.from({ length: 24 }, (_, fd) => `/proc/self/fd/${fd}`);
      for (const cwd of [...places, "/proc/self/root", "/proc/1/cwd", "/proc/1/root"]) {
        const found = await sandbox.exec(["sh", "-c", look], { cwd }).then(
          ({ stdout }) => stdout,
          (error: { code: string }) => error.code,
        );
        expect([cwd, found]).toEqual([cwd, expect.stringMatching(/^(?:|exec\.bad-cwd)$/)]);
      }
      // The control: the same look finds the file where it can be seen.
      const seeing = await open({ workspace: directory });
      expect((await seeing.exec(["sh", "-c", look], { cwd: "/proc/self/root" })).stdout).toContain("x");
    },
  );
});

/** Takes every lock that can be had on everything in the directory, and keeps them. */
const lockEverything = `
import fcntl, os, sys, time
held = []
for place, folders, files in os.walk("."):
    for path in [place, *(os.path.join(place, name) for name in files)]:
        file = os.open(path, os.O_RDONLY)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        held.append(file)
print("ready", len(held), flush=True)
time.sleep(300)
`;

describe("locks that a command keeps on everything in the workspace", () => {
  forEachHostUser((userTest, user) => {
    userTest.skipIf(differs("files.sockets"))(
      titled("files.sockets", "keep neither the next sandbox nor git on the host waiting"),
      async ({ open, directory }) => {
        await run("git", ["init", "-q", directory]);
        await mkdir(join(directory, "src"));
        await writeFile(join(directory, "src/main.c"), "int main;\n");
        await giveToHostUser(directory);
        const first = await open({ workspace: directory });
        const holder = await first.spawn(["python3", "-c", lockEverything]);
        const [line] = (await holder.stdout[Symbol.asyncIterator]().next()).value.toString().split("\n");
        expect(line).toMatch(/^ready \d\d/);
        // The control: the lock does reach the host, as any lock of a shared file does.
        await expect(run("flock", ["-n", join(directory, ".git/config"), "true"])).rejects.toMatchObject({
          code: 1,
        });

        const next = await open({ workspace: directory });
        expect((await next.exec(["cat", "src/main.c"])).stdout).toBe("int main;\n");
        await next.files.write(join(directory, "src/other.c"), "int other;\n");
        const { stdout } = await run("git", ["-C", directory, "status", "--short"], { ...user });
        expect(stdout).toContain("src/");
        await holder.kill();
      },
    );
  });
});
