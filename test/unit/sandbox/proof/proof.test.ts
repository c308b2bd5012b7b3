import { mkdir, mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { SandboxPlan } from "../../../../src/sandbox/plan/plan.js";
import { SANDBOX_MODES } from "../../../../src/sandbox/policy/modes.js";
import { parseReport } from "../../../../src/sandbox/proof/kernel-report.js";
import { compareProof, type ProofContext, proveSandbox } from "../../../../src/sandbox/proof/proof.js";
import { engine, planFor } from "../plan/plan-fixture.js";
import { asBytes, interfaces, ipv6Route, reportSections } from "./kernel-sections.js";

let folder: string;
let plan: SandboxPlan;
let repo: string;
const context: ProofContext = { engine, imageId: "sha256:1", hostKernel: engine.kernel };

beforeAll(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "brig-proof-")));
  repo = join(folder, "a repo");
  await mkdir(join(repo, ".git"), { recursive: true });
  plan = await planFor(repo);
});
afterAll(async () => await rm(folder, { recursive: true }));

type Sections = Map<string, string>;

/** The assertions that fail once `change` is made to what an enforcing kernel reports. */
function failing(change: (sections: Sections) => void, given: SandboxPlan = plan): string[] {
  const sections = reportSections(given);
  change(sections);
  const differences = compareProof(given, parseReport(asBytes(sections)));
  return [...new Set(differences.map(({ assertion }) => assertion))];
}

/** Replaces text of one section, which must contain it. */
function edit(name: string, before: string | RegExp, after: string) {
  return (sections: Sections) => {
    const text = sections.get(name) ?? "";
    expect(typeof before === "string" ? text.includes(before) : before.test(text), `${before}`).toBe(true);
    sections.set(name, text.replace(before, after));
  };
}

const status = (before: string | RegExp, after: string) => edit("/proc/self/status", before, after);
const mounts = (before: string | RegExp, after: string) => edit("/proc/self/mountinfo", before, after);
const set = (name: string, text: string) => (sections: Sections) => void sections.set(name, text);
const drop = (name: string) => (sections: Sections) => void sections.delete(name);

describe("a kernel that enforces the plan", () => {
  for (const mode of SANDBOX_MODES)
    for (const cgroupVersion of ["1", "2"] as const)
      it(`of ${mode} on cgroup v${cgroupVersion} gives no difference`, async () => {
        const given = await planFor(repo, { mode });
        const sections = reportSections(given, cgroupVersion);
        if (mode === "danger-full-access")
          for (const probe of ["ptrace", "chmod-setuid", "write-root"]) sections.set(`probe/${probe}`, "0");
        expect(compareProof(given, parseReport(asBytes(sections)))).toEqual([]);
      });

  it("may have put /dev/null over what is covered, or nothing over a file that is gone", async () => {
    const covered = [{ path: `${repo}/a.sock`, identity: { dev: "1", ino: "2" } }];
    const given = { ...(await planFor(repo, { mode: "read-only" })), covered };
    const cover = `91 9 0:6 /null ${repo.replace(" ", "\\040")}/a.sock rw,nosuid - tmpfs tmpfs rw\n`;
    const append = (sections: Sections) =>
      void sections.set("/proc/self/mountinfo", `${sections.get("/proc/self/mountinfo")}${cover}`);
    expect(failing(append, given)).toEqual([]);
    expect(failing(set(`stat/${repo}/a.sock`, "6 9 20666 0 0 1"), given)).toEqual([]);
    expect(failing(() => undefined, given)).toEqual([]);
    // The same mount anywhere else is one that nobody has asked for.
    expect(failing(append, { ...given, covered: [] })).toEqual(["B4-writable-mounts"]);
  });

  it("shows no socket of the host that was to be covered", () => {
    const covered = [{ path: `${repo}/a.sock`, identity: { dev: "1", ino: "2" } }];
    const uncovered = set(`stat/${repo}/a.sock`, "1 2 140755 1000 1000 1");
    expect(failing(uncovered, { ...plan, covered })).toEqual(["B22-listeners"]);
  });

  it("may have put tunnel interfaces without a route into the namespace", () => {
    expect(failing(set("/proc/net/dev", interfaces(["lo", "tunl0", "sit0", "ip6tnl0"])))).toEqual([]);
  });

  it("may have bound its harmless devices one by one, but no other", () => {
    const device = (path: string, root: string) => (sections: Sections) => {
      const table = sections.get("/proc/self/mountinfo") ?? "";
      sections.set("/proc/self/mountinfo", `${table}91 9 0:6 ${root} ${path} rw,nosuid - devtmpfs udev rw\n`);
    };
    for (const name of ["null", "zero", "full", "random", "urandom", "tty"])
      expect(failing(device(`/dev/${name}`, `/${name}`))).toEqual([]);
    expect(failing(device("/dev/null", "/sda"))).toEqual(["B4-writable-mounts"]);
    expect(failing(device("/dev/sda", "/sda"))).toEqual(["B4-writable-mounts"]);
    expect(failing(device("/null", "/null"))).toEqual(["B4-writable-mounts"]);
  });

  it("may be older than the ambient capabilities", () => {
    expect(failing(status(/CapAmb.*\n/, ""))).toEqual([]);
  });

  it("may show what the host has mounted below a writable workspace, but not below a protected name", () => {
    const below = (path: string) => (sections: Sections) =>
      append(sections, `${repo.replace(" ", "\\040")}${path} rw`);
    expect(failing(below("/data"))).toEqual([]);
    expect(failing(below("/.git/objects"))).toEqual(["B4-writable-mounts"]);
  });

  it("may refuse writing to the root by permission, before it looks at the mount", () => {
    expect(failing(set("probe/write-root", "13"))).toEqual([]);
  });
});

describe("one weakness is found, as the assertion it breaks:", () => {
  it.each<[string, string, (sections: Sections) => void]>([
    ["a capability in use", "A3-capabilities", status(/CapEff:\t0+/, "CapEff:\t0000000000000020")],
    [
      "a capability that could be gained",
      "A3-capabilities",
      status(/CapBnd:\t0+/, "CapBnd:\t0000000000200000"),
    ],
    ["a capability set that is not named", "A3-capabilities", status(/CapInh.*\n/, "")],
    ["new privileges", "A4-no-new-privileges", status("NoNewPrivs:\t1", "NoNewPrivs:\t0")],
    ["privileges not spoken of", "A4-no-new-privileges", status(/NoNewPrivs.*\n/, "")],
    ["no filter", "A5-seccomp", status("Seccomp:\t2", "Seccomp:\t0")],
    ["another effective uid", "A6-user", status("Uid:\t1000\t1000", "Uid:\t1000\t0")],
    ["another gid", "A6-user", status(/Gid:\t1000/, "Gid:\t0")],
    ["a further group", "A6-user", status("Groups:\t1000 ", "Groups:\t1000 999 ")],
    ["another host name", "A9-hostname", set("/proc/sys/kernel/hostname", "build-server\n")],
    ["writable kernel settings", "A11-kernel-settings", mounts("/proc/sys ro", "/proc/sys rw")],
    ["kernel settings not covered", "A11-kernel-settings", mounts(/.* \/proc\/sys .*\n/, "")],
    ["a writable root", "B1-rootfs", mounts("/ / ro", "/ / rw")],
    ["a root that was written to", "B1-rootfs", set("probe/write-root", "0")],
    ["a writable mount nobody planned", "B4-writable-mounts", (sections) => append(sections, "/data rw")],
    ["a host directory over /proc", "B4-writable-mounts", (sections) => append(sections, "/proc/self rw")],
    ["a larger /tmp", "B5-tmpfs", mounts("size=1048576k", "size=8388608k")],
    ["a /tmp without inode cap", "F8-inodes", mounts("nr_inodes=200000,", "")],
    ["a /run with programs", "B6-noexec", mounts("/run rw,nosuid,nodev,noexec", "/run rw,nosuid,nodev")],
    ["a home that honours setuid", "B6-nosuid-nodev", mounts("/home/brig rw,nosuid", "/home/brig rw")],
    ["a larger /dev/shm", "B5-tmpfs", mounts("size=131072k", "size=262144k")],
    ["a /dev/shm that is missing", "B5-tmpfs", mounts(/.* \/dev\/shm .*\n/, "")],
    ["a read-only workspace", "B11-mounts", mounts("/a\\040repo rw", "/a\\040repo ro")],
    ["a writable .git", "B11-mounts", mounts("/.git ro", "/.git rw")],
    ["a .codex that is not mounted", "B11-mounts", mounts(/.*\/\.codex .*\n/, "")],
    ["a writable toolbox", "B11-mounts", mounts(" /.brig ro,relatime - ext4", " /.brig rw,relatime - ext4")],
    ["no mount table", "B11-mounts", drop("/proc/self/mountinfo")],
    ["a broken mount table", "B11-mounts", set("/proc/self/mountinfo", "x\n")],
    [
      "another directory in the workspace's place",
      "B10-identity",
      (sections) => restat(sections, (path) => path === repo),
    ],
    ["another .git", "B10-identity", (sections) => restat(sections, (path) => path.endsWith(".git"))],
    [
      "another directory where a placeholder was made",
      "B10-identity",
      mounts(/254:0 \S+\/\.codex /, "254:0 /home/alice/.ssh "),
    ],
    ["a placeholder on another file system", "B10-identity", mounts(/254:0 (\S+\/\.codex) /, "254:1 $1 ")],
    ["a workspace that could not be looked at", "B10-identity", (sections) => drop(`stat/${repo}`)(sections)],
    ["a network interface", "E1-network", set("/proc/net/dev", interfaces(["lo", "eth0"]))],
    ["a route", "E1-network", set("/proc/net/ipv6_route", ipv6Route("tunl0"))],
    ["no interface table", "E1-network", drop("/proc/net/dev")],
    ["more memory", "F1-limits", set("/sys/fs/cgroup/memory/memory.limit_in_bytes", "8589934592")],
    [
      "no memory limit",
      "F1-limits",
      set("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712"),
    ],
    ["no processes limit", "F1-limits", set("/sys/fs/cgroup/pids/pids.max", "max")],
    ["no CPU limit", "F1-limits", set("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1")],
    ["more CPU", "F1-limits", set("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "800000")],
    ["terminals without a limit", "F20-terminals", mounts(",max=64", "")],
    ["more terminals", "F20-terminals", mounts(",max=64", ",max=640")],
    ["asynchronous I/O", "N-system-calls", set("probe/io-setup", "14")],
    ["locks of open files", "N-system-calls", set("probe/lock-of-open-file", "0")],
    ["processors of other processes", "N-system-calls", set("probe/affinity-of-others", "22")],
    ["swap", "F2-swap", set("/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes", "8589934592")],
    [
      "core dumps",
      "F14-resource-limits",
      edit("/proc/self/limits", /core file size.*/, "core file size          9         9         bytes"),
    ],
    [
      "more open files",
      "F14-resource-limits",
      edit("/proc/self/limits", /open files.*/, "open files            16384  1048576  files"),
    ],
    ["no resource limits", "F14-resource-limits", drop("/proc/self/limits")],
    ["a /dev whose devices can be replaced", "B18-devices", mounts(/(\/dev) ro,nosuid/, "$1 rw,nosuid")],
    ["a /dev/shm without inode cap", "F8-inodes", mounts(/(\/dev\/shm .*),nr_inodes=\d+/, "$1")],
    ["kernel memory to read", "A11-kernel-settings", set("probe/read-slabinfo", "0")],
    ["shared memory that outlives its users", "F17-ipc", set("/proc/sys/kernel/shm_rmid_forced", "0\n")],
    ["more semaphores", "F17-ipc", set("/proc/sys/kernel/sem", "32000\t1024000000\t500\t32000\n")],
    ["message queues nobody spoke of", "F17-ipc", drop("/proc/sys/kernel/msgmni")],
    ["a variable of the image's", "A21-environment", set("environment", "HOME=/home/brig\0LD_PRELOAD=/x\0")],
    ["another PATH", "A21-environment", set("environment", "PATH=/evil\0")],
    ["an environment that was not told", "A21-environment", drop("environment")],
    ["events of the host's kernel", "N-system-calls", set("probe/netlink-uevent", "0")],
    ["vsock", "N-system-calls", set("probe/socket-vsock", "0")],
    ["vsock that only this kernel lacks", "N-system-calls", set("probe/socket-vsock", "97")],
    ["clone3 answered with EPERM", "N-system-calls", set("probe/clone3", "1")],
    ["setuid bits", "A10-setuid-bits", set("probe/chmod-setuid", "0")],
    ["a probe that was not made", "N-system-calls", drop("probe/io-uring")],
  ])("%s → %s", (_, assertion, change) => {
    expect(failing(change)).toContain(assertion);
  });

  it("a weak spot breaks no other assertion", () => {
    expect(failing(status("NoNewPrivs:\t1", "NoNewPrivs:\t0"))).toEqual(["A4-no-new-privileges"]);
    expect(failing(mounts("/.git ro", "/.git rw"))).toEqual(["B11-mounts"]);
    expect(failing(set("/sys/fs/cgroup/pids/pids.max", "max"))).toEqual(["F1-limits"]);
    expect(failing((sections) => append(sections, "/data rw"))).toEqual(["B4-writable-mounts"]);
  });

  it("a mount over a planned one, hiding it", () => {
    expect(failing((sections) => append(sections, "/home ro"))).toContain("B5-tmpfs");
    expect(failing((sections) => append(sections, `${folder} ro`))).toContain("B11-mounts");
  });

  it("a mount that is missing where the engine sorted it away", () => {
    expect(failing(mounts(/.* \/tmp .*\n/, ""))).toEqual(["B5-tmpfs"]);
  });

  it.each(Array.from({ length: 41 }, (_, number) => number))(
    "capability %d where none is planned, and in danger-full-access where an engine does not give it",
    async (number) => {
      const danger = await planFor(repo, { mode: "danger-full-access" });
      const bit = (1n << BigInt(number)).toString(16).padStart(16, "0");
      const gained = status(/CapPrm:\t\w+/, `CapPrm:\t${bit}`);
      expect(failing(gained)).toEqual(["A3-capabilities"]);
      // chown to kill, setgid, setuid, setpcap, net_bind_service, net_raw, sys_chroot, audit_write
      const isGiven = [0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 29].includes(number);
      const forRoot = (sections: Sections) => {
        gained(sections);
        for (const probe of ["ptrace", "chmod-setuid", "write-root"]) sections.set(`probe/${probe}`, "0");
      };
      expect(failing(forRoot, danger)).toEqual(isGiven ? [] : ["A3-capabilities"]);
    },
  );

  it("a workspace of the same inode on another device, and of another inode on the same", () => {
    const [device, inode] = (reportSections(plan).get(`stat/${repo}`) ?? "").split(" ");
    expect(failing(set(`stat/${repo}`, `${Number(device) + 1} ${inode} 40755 1000 1000 1`))).toEqual([
      "B10-identity",
    ]);
    expect(failing(set(`stat/${repo}`, `${device} ${Number(inode) + 1} 40755 1000 1000 1`))).toEqual([
      "B10-identity",
    ]);
  });

  it("a danger-full-access container that is privileged", async () => {
    const danger = await planFor(repo, { mode: "danger-full-access" });
    expect(failing(status(/CapEff:\t\w+/, "CapEff:\t000001ffffffffff"), danger)).toEqual(["A3-capabilities"]);
  });

  it("nothing but the report's absence, everywhere at once", () => {
    const all = failing((sections) => sections.clear());
    expect(all).toEqual(
      expect.arrayContaining([
        "A3-capabilities",
        "A4-no-new-privileges",
        "A5-seccomp",
        "A6-user",
        "A9-hostname",
      ]),
    );
    expect(all).toEqual(
      expect.arrayContaining(["B1-rootfs", "B11-mounts", "E1-network", "F1-limits", "F2-swap"]),
    );
  });
});

describe("a proof", () => {
  it("records who enforced what", () => {
    const proof = proveSandbox(plan, parseReport(asBytes(reportSections(plan))), context);
    expect(proof).toMatchObject({
      policy: "workspace-write",
      differences: [],
      notProvable: [],
      engine: { product: "docker", version: "20.10.24", kernel: "6.1.0-test", cgroupVersion: "1" },
      runtime: "runc",
      imageId: "sha256:1",
    });
    expect(proof.summary).toMatchObject({ uid: "1000", seccompMode: "2", interfaces: "lo", swapBytes: "0" });
    expect(JSON.parse(JSON.stringify(proof))).toEqual(proof);
  });

  it("says what each difference promised and what the kernel says", () => {
    const sections = reportSections(plan).set("/sys/fs/cgroup/pids/pids.max", "max");
    const { differences } = proveSandbox(plan, parseReport(asBytes(sections)), context);
    expect(differences).toEqual([{ assertion: "F1-limits", promised: "pids 1024", kernel: "pids Infinity" }]);
  });

  it("says that the kernel's answer about users is unknown where there is none", () => {
    const sections = reportSections(plan);
    sections.delete("/proc/self/status");
    const { differences } = proveSandbox(plan, parseReport(asBytes(sections)), context);
    expect(differences.find(({ assertion }) => assertion === "A6-user")).toEqual({
      assertion: "A6-user",
      promised: "uid 1000, gid 1000, no further group",
      kernel: "uids unknown, gids unknown, groups unknown",
    });
  });

  it("keeps control characters of a container's mount table from a terminal", () => {
    const sections = reportSections(plan);
    append(sections, "/\x1b[2Jevil rw");
    const { differences } = proveSandbox(plan, parseReport(asBytes(sections)), context);
    expect(differences).toHaveLength(1);
    expect(JSON.stringify(differences[0]?.kernel)).toContain("u001b");
    expect(differences[0]?.kernel).not.toContain("\x1b");
  });

  describe("under gVisor", () => {
    const runsc = (...args: string[]): ProofContext => ({
      ...context,
      engine: { ...engine, runtimes: [{ name: "boxed", program: "/opt/runsc", args }] },
    });
    const onGvisor = (): SandboxPlan => ({ ...plan, runtime: "boxed", kernel: "gvisor" });
    const uname = "4.4.0\n#1 SMP Sun Jan 10 15:06:54 PST 2016";
    const reported = (change: (sections: Sections) => void = () => undefined) => {
      const sections = reportSections(plan).set("uname", uname);
      for (const name of [...sections.keys()])
        if (/cgroup|^probe\/(?!write|read)/.test(name)) sections.delete(name);
      status(/NoNewPrivs.*\n|Seccomp.*\n/g, "")(sections);
      change(sections);
      return parseReport(asBytes(sections));
    };

    it("lists what cannot be shown there, with the reason, and nothing else is excused", () => {
      const proof = proveSandbox(onGvisor(), reported(), runsc());
      expect(proof.differences).toEqual([]);
      expect(new Set(proof.notProvable.map(({ assertion }) => assertion))).toEqual(
        new Set([
          "A4-no-new-privileges",
          "A5-seccomp",
          "A10-setuid-bits",
          "F1-limits",
          "F2-swap",
          "N-system-calls",
        ]),
      );
      for (const { reason } of proof.notProvable) expect(reason).toMatch(/gVisor/);

      const weak = reported((sections) => {
        status(/CapEff:\t0+/, "CapEff:\t0000003fffffffff")(sections);
        sections.set("/proc/net/dev", interfaces(["lo", "eth0"]));
      });
      const { differences } = proveSandbox(onGvisor(), weak, runsc());
      expect(differences.map(({ assertion }) => assertion)).toEqual(["A3-capabilities", "E1-network"]);
    });

    it("excuses nothing where gVisor was expected and another kernel answers, whatever the runtime is called", () => {
      const honest = reported((sections) => sections.set("uname", "6.1.0\n#1 SMP Debian 6.1.0"));
      const silent = reported((sections) => void sections.delete("uname"));
      for (const report of [honest, silent]) {
        const proof = proveSandbox({ ...onGvisor(), runtime: "runsc" }, report, runsc());
        expect(proof.notProvable).toEqual([]);
        expect(proof.differences.map(({ assertion }) => assertion)).toEqual(
          expect.arrayContaining(["A0-kernel", "A5-seccomp", "F1-limits", "N-system-calls"]),
        );
      }
    });

    it("excuses nothing where gVisor answers and was not expected", () => {
      const proof = proveSandbox({ ...onGvisor(), kernel: "shared" }, reported(), runsc());
      expect(proof.notProvable).toEqual([]);
      expect(proof.differences[0]).toEqual({
        assertion: "A0-kernel",
        promised: "the engine's own",
        kernel: "gVisor",
      });
    });

    it("demands the filter of a gVisor that loads filters", () => {
      const { differences } = proveSandbox(onGvisor(), reported(), runsc("--oci-seccomp"));
      expect(new Set(differences.map(({ assertion }) => assertion))).toEqual(
        new Set(["A5-seccomp", "A10-setuid-bits", "N-system-calls"]),
      );
      expect(differences.filter(({ promised }) => promised.startsWith("clone3"))).toEqual([]);
    });

    it("says whether the limits hold outside", () => {
      const reason = (context: ProofContext) =>
        proveSandbox(onGvisor(), reported(), context).notProvable.find(
          ({ assertion }) => assertion === "F1-limits",
        )?.reason;
      expect(reason(runsc("--ignore-cgroups"))).toMatch(/there is no limit/);
      expect(reason(runsc("--platform=kvm"))).toMatch(
        /the host's kernel enforces these for gVisor as a whole$/,
      );
      const unknown = { ...context, engine: { ...engine, runtimes: [] } };
      expect(reason(unknown)).toMatch(/unless it is started with --ignore-cgroups/);
    });
  });

  it("cannot compare inodes with an engine in a virtual machine", () => {
    const sections = reportSections(plan).set(`stat/${repo}`, "1 1 40755 1000 1000 1");
    const report = parseReport(asBytes(sections));
    expect(proveSandbox(plan, report, context).differences).toHaveLength(1);
    const proof = proveSandbox(plan, report, { ...context, hostKernel: "23.1.0" });
    expect(proof.differences).toEqual([]);
    expect(proof.notProvable).toMatchObject([
      { assertion: "B10-identity", reason: expect.stringContaining("virtual machine") },
    ]);
  });

  it("cannot show that swap is closed where the kernel does not count it, but demands every other limit", () => {
    const sections = reportSections(plan);
    sections.delete("/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes");
    expect(proveSandbox(plan, parseReport(asBytes(sections)), context)).toMatchObject({
      differences: [],
      notProvable: [{ assertion: "F2-swap" }],
    });
    sections.delete("/sys/fs/cgroup/memory/memory.limit_in_bytes");
    const assertions = proveSandbox(plan, parseReport(asBytes(sections)), context).differences;
    expect(assertions.map(({ assertion }) => assertion)).toEqual(["F1-limits", "F2-swap"]);
  });
});

it.each([
  ["4.4.0\n#1 SMP Sun Jan 10 15:06:54 PST 2016", "gvisor"],
  ["4.19.0-gvisor\n#1 SMP Sun Jan 10 15:06:54 PST 2016", "gvisor"],
  ["4.4.0\n#1 SMP Debian 4.4.0-1 (2016-01-10)", "shared"],
  ["6.1.0-gvisor-host\n#1 SMP", "shared"],
  ["", "shared"],
  [undefined, "shared"],
])("a kernel that calls itself %j is %s", (uname, kernel) => {
  const sections = new Map(uname === undefined ? [] : [["uname", uname]]);
  expect(parseReport(asBytes(sections)).kernel).toBe(kernel);
});

function append(sections: Sections, pathAndOptions: string): void {
  const table = sections.get("/proc/self/mountinfo") ?? "";
  sections.set(
    "/proc/self/mountinfo",
    `${table}90 9 254:0 / ${pathAndOptions},relatime - ext4 /dev/vda rw\n`,
  );
}

function restat(sections: Sections, isChosen: (path: string) => boolean): void {
  for (const name of sections.keys())
    if (name.startsWith("stat/") && isChosen(name.slice(5))) sections.set(name, "1 1 40755 1000 1000 1");
}
