import { mkdir, mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { SandboxPlan } from "../../../../src/sandbox/plan/plan.js";
import { parseReport } from "../../../../src/sandbox/proof/kernel-report.js";
import { compareProof } from "../../../../src/sandbox/proof/proof.js";
import { planFor } from "../plan/plan-fixture.js";
import { asBytes, interfaces, ipv6Route, reportSections } from "./kernel-sections.js";

let repo: string;
let plan: SandboxPlan;

beforeAll(async () => {
  repo = join(await realpath(await mkdtemp(join(tmpdir(), "brig-words-"))), "repo");
  await mkdir(join(repo, ".git"), { recursive: true });
  plan = await planFor(repo);
});
afterAll(async () => await rm(join(repo, ".."), { recursive: true }));

type Change = (sections: Map<string, string>) => void;

/** What is said of what `change` makes of the report of a kernel that enforces the plan. The workspace is REPO in it. */
function words(change: Change): string[] {
  const sections = reportSections(plan);
  change(sections);
  return compareProof(plan, parseReport(asBytes(sections))).map(({ assertion, promised, kernel }) =>
    `${assertion}: ${promised} | ${kernel}`.replaceAll(repo, "REPO"),
  );
}

const edit =
  (name: string, before: RegExp, after: string): Change =>
  (sections) => {
    const text = sections.get(name) ?? "";
    expect(text).toMatch(before);
    sections.set(name, text.replace(before, after));
  };
const drop =
  (name: string): Change =>
  (sections) =>
    void sections.delete(name);
const set =
  (name: string, text: string): Change =>
  (sections) =>
    void sections.set(name, text);
const status = (before: RegExp, after: string) => edit("/proc/self/status", before, after);
const mounts = (before: RegExp, after: string) => edit("/proc/self/mountinfo", before, after);

const noLimits = [
  "Max open files 16384 | Max open files unknown",
  "Max core file size 0 | Max core file size unknown",
];
const ids = (uid: number, gid: number, groups: string) => {
  const four = (id: number) => Array(4).fill(id).join(",");
  return `A6-user: uid 1000, gid 1000, no further group | uids ${four(uid)}, gids ${four(gid)}, groups ${groups}`;
};
const network = "E1-network: no interface but lo, and no route";
const calls = (probe: string, errno: string, assertion = "N-system-calls") =>
  `${assertion}: ${probe} fails with errno ${errno} | unknown`;

describe("a proof names what was promised, and what the kernel says", () => {
  it.each<[string, Change, string[]]>([
    [
      "no status",
      drop("/proc/self/status"),
      [
        ...["CapInh", "CapPrm", "CapEff", "CapBnd"].map(
          (name) => `A3-capabilities: no capability | ${name} unknown`,
        ),
        "A4-no-new-privileges: setuid programs gain no privileges | NoNewPrivs unknown",
        "A5-seccomp: a system call filter is on | Seccomp unknown",
        "A6-user: uid 1000, gid 1000, no further group | uids unknown, gids unknown, groups unknown",
      ],
    ],
    [
      "capabilities",
      status(/CapEff.*/, "CapEff:\t000000000000001f"),
      ["A3-capabilities: no capability | CapEff 1f"],
    ],
    ["ambient ones", status(/CapAmb.*/, "CapAmb:\t01"), ["A3-capabilities: no capability | CapAmb 1"]],
    [
      "new privileges",
      status(/NoNewPrivs:\t1/, "NoNewPrivs:\t0"),
      ["A4-no-new-privileges: setuid programs gain no privileges | NoNewPrivs false"],
    ],
    [
      "no filter",
      status(/Seccomp:\t2/, "Seccomp:\t0"),
      ["A5-seccomp: a system call filter is on | Seccomp 0"],
    ],
    ["another user", status(/Uid:.*/, "Uid:\t1\t1\t1\t1"), [ids(1, 1000, "1000")]],
    ["another group", status(/Gid:.*/, "Gid:\t0\t0\t0\t0"), [ids(1000, 0, "1000")]],
    ["a further group", status(/Groups:.*/, "Groups:\t0 1000"), [ids(1000, 1000, "0,1000")]],
    ["no group", status(/Groups:.*/, "Groups:\t"), []],
    [
      "interfaces",
      set("/proc/net/dev", interfaces(["lo", "eth0"])),
      [`${network} | interfaces lo,eth0, routes through lo`],
    ],
    [
      "a route",
      set("/proc/net/ipv6_route", ipv6Route("eth0")),
      [`${network} | interfaces lo, routes through eth0`],
    ],
    ["no interfaces", drop("/proc/net/dev"), [`${network} | interfaces unknown, routes through lo`]],
    ["another kernel", set("uname", "4.4.0-gvisor\nx"), ["A0-kernel: the engine's own | gVisor"]],
    ["another host name", set("/proc/sys/kernel/hostname", "other\n"), ["A9-hostname: brig | other"]],
    ["no host name", drop("/proc/sys/kernel/hostname"), ["A9-hostname: brig | unknown"]],
    ["no environment", drop("environment"), ['A21-environment: no variable from the image | "unknown"']],
    [
      "variables of the image, without their values",
      (sections) => void sections.set("environment", `${sections.get("environment")}X=secret\0`),
      ['A21-environment: no variable from the image | "X"'],
    ],
    ["no limits", drop("/proc/self/limits"), noLimits.map((line) => `F14-resource-limits: ${line}`)],
    [
      "another limit",
      edit("/proc/self/limits", /(Max open files +)\d+( +)\d+/, "$17$27"),
      ["F14-resource-limits: Max open files 16384 | Max open files 7"],
    ],
    ["no processes", set("/sys/fs/cgroup/pids/pids.max", "5\n"), ["F1-limits: pids 1024 | pids 5"]],
    ["no limit of processes", drop("/sys/fs/cgroup/pids/pids.max"), ["F1-limits: pids 1024 | pids unknown"]],
    [
      "less memory",
      set("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1\n"),
      [
        "F1-limits: memory bytes 4294967296 | memory bytes 1",
        "F2-swap: swap bytes 0 | swap bytes 4294967295",
      ],
    ],
    ["no processors", drop("/sys/fs/cgroup/cpu/cpu.cfs_period_us"), ["F1-limits: cpus 4 | cpus unknown"]],
    [
      "queues",
      drop("/proc/sys/fs/mqueue/msg_max"),
      ["F17-ipc: fs.mqueue.msg_max 10 | fs.mqueue.msg_max unknown"],
    ],
    [
      "semaphores",
      set("/proc/sys/kernel/sem", "1\t2 3 4\n"),
      ["F17-ipc: kernel.sem 250 32000 100 128 | kernel.sem 1 2 3 4"],
    ],
    ["a system call", drop("probe/bpf"), [calls("bpf", "1")]],
    ["a system call that is not there", drop("probe/clone3"), [calls("clone3", "38")]],
    [
      "a system call that is allowed",
      set("probe/mount", "0"),
      ["N-system-calls: mount fails with errno 1 | errno 0"],
    ],
    ["setuid bits", drop("probe/chmod-setuid"), [calls("chmod-setuid", "1", "A10-setuid-bits")]],
    [
      "kernel files",
      drop("probe/read-slabinfo"),
      [calls("read-slabinfo", "1 or 2 or 13 or 61", "A11-kernel-settings")],
    ],
    ["writes to the root", drop("probe/write-root"), [calls("write-root", "30 or 13 or 1", "B1-rootfs")]],
    [
      "no mounts",
      drop("/proc/self/mountinfo"),
      ["B11-mounts: the mounts of the plan | no readable mount table"],
    ],
    ["a writable root", mounts(/( \/ )ro/, "$1rw"), ["B1-rootfs: root file system ro | rw"]],
    [
      "small memory files",
      mounts(/(\/dev\/shm .*)size=\d+k/, "$1size=1k"),
      [
        'B5-tmpfs: "/dev/shm" tmpfs rw size=134217728 | ' +
          '"/dev/shm" tmpfs rw,nosuid,nodev,noexec,relatime (rw,size=1k,nr_inodes=8192)',
      ],
    ],
    [
      "memory files that run",
      mounts(/(\/dev\/shm )rw,nosuid,nodev,noexec/, "$1rw"),
      ["noexec", "nosuid,nodev"].map(
        (option, at) =>
          `${["B6-noexec", "B6-nosuid-nodev"][at]}: "/dev/shm" tmpfs ${option} | ` +
          '"/dev/shm" tmpfs rw,relatime (rw,size=131072k,nr_inodes=8192)',
      ),
    ],
    ["a writable repository", mounts(/(\.git )ro/, "$1rw"), ['B11-mounts: "REPO/.git" ro | rw']],
    [
      "another mount",
      (sections) =>
        void sections.set(
          "/proc/self/mountinfo",
          `${sections.get("/proc/self/mountinfo")}99 9 0:6 / /extra rw - ext4 ext4 rw\n`,
        ),
      ['B4-writable-mounts: no further writable mount | "/extra" ext4 rw (rw)'],
    ],
    [
      "kernel settings",
      mounts(/(\/proc\/sys )ro/, "$1rw"),
      ["A11-kernel-settings: /proc/sys ro", "B4-writable-mounts: no further writable mount"].map(
        (promised) => `${promised} | "/proc/sys" proc rw,nosuid,nodev,noexec,relatime (rw)`,
      ),
    ],
  ])("of %s", (_name, change, expected) => {
    expect(words(change)).toEqual(expected);
  });

  it("of another workspace", () => {
    const { dev, ino } = plan.mounts.find(({ path }) => path === repo)?.identity ?? { dev: "", ino: "" };
    const promised = `B10-identity: "REPO" is device ${dev}, inode ${ino}`;
    expect(words(set(`stat/${repo}`, "1 2 40755 0 0 1"))).toEqual([`${promised} | device 1, inode 2`]);
    expect(words(drop(`stat/${repo}`))).toEqual([`${promised} | unknown`]);
  });
});

it("a section of a report may have 1 MiB, and no more", () => {
  const hostname = (length: number) =>
    asBytes(new Map([["/proc/sys/kernel/hostname", `${"x".repeat(length - 1)}\n`]]));
  const read = (length: number) => parseReport(hostname(length)).hostname;
  expect(read(2 ** 20)?.length).toBe(2 ** 20 - 1);
  expect(read(2 ** 20 + 1)).toBeNull();
});
