import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import {
  type HostProcesses,
  type Owner,
  ownerOf,
  ownerState,
  readHostProcesses,
  startTime,
} from "../../../src/lib/owner.js";
import { readSessionLabels, sessionLabels } from "../../../src/sandbox/labels.js";

const owner: Owner = { pid: 100, startedAt: "5000", bootId: "boot-1", host: "vm-1" };

function machine(
  changes: Partial<HostProcesses> & { running?: Record<number, string | null> } = {},
): HostProcesses {
  const { running = { 100: "5000" }, ...rest } = changes;
  return {
    host: "vm-1",
    bootId: "boot-1",
    isAlive: (pid) => pid in running,
    startOf: async (pid) => running[pid] ?? null,
    ...rest,
  };
}

describe("an owner", () => {
  it.each<[string, "alive" | "gone" | "elsewhere", HostProcesses]>([
    ["that runs is alive", "alive", machine()],
    ["whose pid nobody has is gone", "gone", machine({ running: {} })],
    ["whose pid another process got is gone", "gone", machine({ running: { 100: "6000" } })],
    [
      "of another boot of this machine is gone, even if its pid is taken",
      "gone",
      machine({ bootId: "boot-2" }),
    ],
    ["of another machine is never gone", "elsewhere", machine({ host: "vm-2", running: {} })],
    ["of a boot this machine cannot name is never gone", "elsewhere", machine({ bootId: null, running: {} })],
    ["whose start cannot be read is alive while its pid is", "alive", machine({ running: { 100: null } })],
  ])("%s", async (_, expected, processes) => {
    expect(await ownerState(owner, processes)).toBe(expected);
  });

  it("on a machine without /proc is judged by its pid alone", async () => {
    const mac = { ...owner, startedAt: null, bootId: null };
    expect(await ownerState(mac, machine({ bootId: null, running: { 100: null } }))).toBe("alive");
    expect(await ownerState(mac, machine({ bootId: null, running: {} }))).toBe("gone");
  });
});

describe("a start time", () => {
  const fields = Array.from({ length: 49 }, (_, index) => String(index + 4)).join(" ");

  it("is field 22 of a stat line", () => {
    expect(startTime(`1 (node) S ${fields}`)).toBe("22");
  });

  it("is found whatever the program is called", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 15 }), (name) => {
        expect(startTime(`1 (${name}) S ${fields}`)).toBe("22");
      }),
    );
    expect(startTime(`1 (a) S 1 2) R ) S ${fields}`)).toBe("22");
  });

  it("is unknown in anything else", () => {
    for (const stat of ["", "1", "1 (node) S 4 5", "garbage) garbage"]) expect(startTime(stat)).toBeNull();
  });
});

describe("the machine", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "brig-owner-"));
  });
  afterAll(async () => await rm(folder, { recursive: true }));

  async function build(
    name: string,
    files: Record<string, string>,
    namespace = "pid:[4026531836]",
  ): Promise<string> {
    const root = `${join(folder, name)}/`;
    await mkdir(join(root, "proc/self/ns"), { recursive: true });
    await symlink(namespace, join(root, "proc/self/ns/pid"));
    for (const [path, text] of Object.entries(files)) {
      await mkdir(dirname(join(root, path)), { recursive: true });
      await writeFile(join(root, path), text);
    }
    return root;
  }

  it("is another one with another machine id or in another process namespace, whatever its name", async () => {
    const first = await readHostProcesses("ubuntu", await build("a", { "etc/machine-id": "1\n" }));
    const same = await readHostProcesses("ubuntu", await build("b", { "etc/machine-id": "1\n" }));
    const clone = await readHostProcesses("ubuntu", await build("c", { "etc/machine-id": "2\n" }));
    const container = await readHostProcesses(
      "ubuntu",
      await build("d", { "etc/machine-id": "1\n" }, "pid:[40265320]"),
    );
    expect(first.host).toMatch(/^ubuntu-[0-9a-f]{12}$/);
    expect(same.host).toBe(first.host);
    expect(new Set([first.host, clone.host, container.host]).size).toBe(3);
  });

  it("without /proc has no boot id and no start times", async () => {
    const mac = await readHostProcesses("mac", `${join(folder, "none")}/`);
    expect(mac.bootId).toBeNull();
    expect(await ownerOf(process.pid, mac)).toEqual({
      pid: process.pid,
      startedAt: null,
      bootId: null,
      host: mac.host,
    });
    expect(await ownerState(await ownerOf(process.pid, mac), mac)).toBe("alive");
  });

  const tellsEnded = "tells this process from one that has ended [needs Linux]";
  it.runIf(process.platform === "linux")(tellsEnded, async () => {
    const here = await readHostProcesses("here");
    const me = await ownerOf(process.pid, here);
    expect(me).toMatchObject({
      startedAt: expect.stringMatching(/^\d+$/),
      bootId: expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
    expect(await ownerState(me, here)).toBe("alive");

    const child = execFile("sleep", ["30"]);
    const childOwner = await ownerOf(child.pid ?? 0, here);
    expect(await ownerState(childOwner, here)).toBe("alive");
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await ended;
    expect(await ownerState(childOwner, here)).toBe("gone");
  });

  const tellsZombie =
    "takes one that has ended for gone, though its parent never asks for its status [needs Linux]";
  it.runIf(process.platform === "linux")(tellsZombie, async () => {
    const here = await readHostProcesses("here");
    const parent = spawn("sh", ["-c", "sleep 60 & echo $!; exec sleep 60"]);
    onTestFinished(() => void parent.kill("SIGKILL"));
    const pid = Number(await once(parent.stdout, "data"));
    const child = await ownerOf(pid, here);
    expect(await ownerState(child, here)).toBe("alive");
    // The shell itself would ask for the status; what it becomes does not.
    await expect.poll(() => readFile(`/proc/${parent.pid}/comm`, "utf8")).toBe("sleep\n");
    process.kill(pid, "SIGKILL");
    await expect.poll(() => ownerState(child, here)).toBe("gone");
    expect(await here.startOf(pid), "it still has its number").toBe(child.startedAt);
  });
});

describe("session labels", () => {
  const mark = {
    sessionId: "s1",
    version: "0.1.0",
    owner,
    createdAt: new Date("2026-11-20T10:00:00.000Z"),
    leaseSeconds: 60,
  };

  it("are read back as they were written", () => {
    expect(readSessionLabels(sessionLabels(mark))).toEqual(mark);
    const mac = { ...mark, owner: { ...owner, startedAt: null, bootId: null }, leaseSeconds: 0 };
    expect(readSessionLabels(sessionLabels(mac))).toEqual(mac);
  });

  it("name everything that the sweep needs", () => {
    expect(Object.keys(sessionLabels(mark)).toSorted()).toEqual([
      "brig.boot",
      "brig.created",
      "brig.host",
      "brig.lease",
      "brig.owner-pid",
      "brig.owner-start",
      "brig.session",
      "brig.version",
    ]);
  });

  it.each(["brig.session", "brig.owner-pid", "brig.host", "brig.created", "brig.lease"])(
    "without %s, or with nonsense in it, cannot be read",
    (name) => {
      const { [name]: _, ...rest } = sessionLabels(mark);
      expect(readSessionLabels(rest)).toBeNull();
      expect(readSessionLabels({ ...rest, [name]: "" })).toBeNull();
    },
  );

  it("with a pid that is none cannot be read", () => {
    for (const pid of ["-1", "1.5", "1e3", "one", "99999999999"])
      expect(readSessionLabels({ ...sessionLabels(mark), "brig.owner-pid": pid })).toBeNull();
  });
});
