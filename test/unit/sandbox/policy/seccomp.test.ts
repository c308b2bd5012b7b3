import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { loadSeccompProfile, policyDirectory } from "../../../../src/sandbox/policy/policy-directory.js";

const argument = z.strictObject({
  index: z.int().min(0).max(5),
  value: z.int().min(0),
  valueTwo: z.int().min(0).optional(),
  op: z.enum(["SCMP_CMP_EQ", "SCMP_CMP_MASKED_EQ", "SCMP_CMP_LT", "SCMP_CMP_NE"]),
});
const profileSchema = z.strictObject({
  defaultAction: z.literal("SCMP_ACT_ERRNO"),
  defaultErrnoRet: z.literal(1),
  archMap: z.array(z.strictObject({ architecture: z.string(), subArchitectures: z.array(z.string()) })),
  syscalls: z.array(
    z.strictObject({
      comment: z.string().min(1),
      names: z.array(z.string().regex(/^[a-z][a-z0-9_]*$/)).min(1),
      action: z.enum(["SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO"]),
      errnoRet: z.union([z.literal(0), z.literal(22), z.literal(38), z.literal(93)]).optional(),
      args: z.array(argument).min(1).max(2).optional(),
    }),
  ),
});
const read = async (file: string) =>
  profileSchema.parse(JSON.parse(await readFile(join(policyDirectory, file), "utf8")));
const profile = await read("seccomp.json");
const forRoot = await read("seccomp-full-access.json");

const CLONE_NEW = 0x7e020000;
const SETUID_SETGID = 0o6000;
const unconditional = profile.syscalls.filter(({ action, args }) => action === "SCMP_ACT_ALLOW" && !args);
const allowed = unconditional.flatMap(({ names }) => names);
const conditional = profile.syscalls.filter(({ args }) => args !== undefined);
const rulesOf = (name: string) =>
  conditional.filter(({ names }) => names.includes(name)).map(({ args }) => args?.[0]);

describe("the system call filter", () => {
  it("refuses with EPERM what it does not name", () => {
    expect(profile.defaultAction).toBe("SCMP_ACT_ERRNO");
  });

  it("knows 64-bit amd64 and arm64 and no 32-bit way around itself", () => {
    expect(profile.archMap).toEqual([
      { architecture: "SCMP_ARCH_X86_64", subArchitectures: [] },
      { architecture: "SCMP_ARCH_AARCH64", subArchitectures: [] },
    ]);
    expect(allowed).not.toContain("socketcall");
    expect(allowed.filter((name) => /(?:32|64_64|_time64)$/.test(name))).toEqual([]);
  });

  it("lists its names sorted and each once", () => {
    expect(unconditional).toHaveLength(1);
    expect(allowed).toEqual([...new Set(allowed)].toSorted());
    for (const { names } of profile.syscalls) expect(names).toEqual([...new Set(names)].toSorted());
  });

  it("has no condition for a call that is allowed without one", () => {
    const others = profile.syscalls
      .filter((rule) => !unconditional.includes(rule))
      .flatMap(({ names }) => names);
    expect(others.filter((name) => allowed.includes(name))).toEqual([]);
  });

  it.each([
    ["N1", ["io_uring_setup", "io_uring_enter", "io_uring_register"]],
    ["N6", ["userfaultfd", "keyctl", "add_key", "request_key"]],
    ["N7", ["bpf", "perf_event_open", "fanotify_init", "fanotify_mark"]],
    ["N8", ["open_by_handle_at", "name_to_handle_at"]],
    [
      "N9",
      [
        "mount",
        "umount",
        "umount2",
        "pivot_root",
        "chroot",
        "open_tree",
        "open_tree_attr",
        "move_mount",
        "fsopen",
      ],
    ],
    ["N9", ["fsmount", "fsconfig", "fspick", "mount_setattr", "setns"]],
    [
      "N10",
      ["init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "swapon"],
    ],
    ["N10", ["swapoff", "acct", "quotactl", "quotactl_fd", "settimeofday", "clock_settime", "clock_adjtime"]],
    ["N10", ["adjtimex", "iopl", "ioperm", "syslog", "sethostname", "setdomainname", "vhangup"]],
    ["N13", ["ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "kcmp", "process_madvise"]],
    ["N17", ["io_submit", "io_getevents", "io_pgetevents", "io_cancel", "io_destroy"]],
    ["N14", ["memfd_secret", "vmsplice", "remap_file_pages", "modify_ldt", "process_mrelease"]],
    ["NUMA", ["mbind", "migrate_pages", "move_pages", "set_mempolicy"]],
  ])("row %s: does not name %j", (_, names) => {
    const named = profile.syscalls.flatMap((rule) => rule.names);
    expect(names.filter((name) => named.includes(name))).toEqual([]);
  });

  it("N2 to N5: opens sockets of UNIX, INET and INET6, of NETLINK those for routes, and pairs of UNIX", () => {
    const equal = (value: number) => ({ index: 0, value, op: "SCMP_CMP_EQ" });
    const rules = conditional.filter(({ names }) => names.includes("socket"));
    const netlink = equal(16);
    expect(rules.map(({ action, args }) => [action, args])).toEqual([
      ...[1, 2, 10].map((family) => ["SCMP_ACT_ALLOW", [equal(family)]]),
      ["SCMP_ACT_ALLOW", [netlink, { index: 2, value: 0, op: "SCMP_CMP_EQ" }]],
      ["SCMP_ACT_ERRNO", [netlink, { index: 2, value: 0, op: "SCMP_CMP_NE" }]],
    ]);
    expect(rulesOf("socketpair")).toEqual([equal(1)]);
  });

  it("N11: answers ENOSYS and the like where callers then do without, as on a kernel without it", () => {
    const answers = profile.syscalls.filter(({ action }) => action === "SCMP_ACT_ERRNO");
    expect(answers.map(({ names, errnoRet }) => [names, errnoRet])).toEqual([
      [["socket"], 93],
      [["clone3"], 38],
      [["io_setup"], 38],
      [["openat2"], 38],
      [["sched_setaffinity"], 0],
      [["fcntl"], 22],
      [["fcntl"], 22],
      [["fcntl"], 22],
    ]);
  });

  it("takes no command of fcntl that holds a lease, and none that is not known", () => {
    const rules = conditional
      .filter(({ names, action }) => names.includes("fcntl") && action === "SCMP_ACT_ALLOW")
      .map(({ args }) => args?.[0]);
    const isAllowed = (command: number) =>
      rules.some((rule) => (rule?.op === "SCMP_CMP_LT" ? command < rule.value : command === rule?.value));
    for (const command of [0, 1, 6, 16, 1030, 1031, 1033, 1034])
      expect([command, isAllowed(command)]).toEqual([command, true]);
    for (const command of [36, 37, 38, 1024, 1026, 1039, 1040, 1041, 2 ** 32 + 1024, 2 ** 32 + 37])
      expect([command, isAllowed(command)]).toEqual([command, false]);
  });

  it("answers to locks of open files as a kernel without them", () => {
    const refused = conditional.filter(({ names, errnoRet }) => names.includes("fcntl") && errnoRet === 22);
    expect(refused.map(({ args }) => args)).toEqual(
      [36, 37, 38].map((value) => [{ index: 1, value, op: "SCMP_CMP_EQ" }]),
    );
  });

  it.each(["sched_setattr", "sched_setparam", "sched_setscheduler", "sched_setaffinity"])(
    "%s concerns the caller alone",
    (name) => {
      const own = conditional.filter(
        ({ names, action }) => names.includes(name) && action === "SCMP_ACT_ALLOW",
      );
      expect(own.map(({ args }) => args)).toEqual([[{ index: 0, value: 0, op: "SCMP_CMP_EQ" }]]);
    },
  );

  it("takes processors for a thread by its number, without effect, since it cannot tell whose it is", () => {
    const without = conditional.filter(({ errnoRet }) => errnoRet === 0);
    expect(without.map(({ names, args }) => [names, args])).toEqual([
      [["sched_setaffinity"], [{ index: 0, value: 0, op: "SCMP_CMP_NE" }]],
    ]);
  });

  it("renames without leaving a whiteout", () => {
    expect(rulesOf("renameat2")).toEqual([{ index: 4, value: 4, valueTwo: 0, op: "SCMP_CMP_MASKED_EQ" }]);
  });

  it("makes processes and threads, but no namespaces", () => {
    const masked = (value: number) => [{ index: 0, value, valueTwo: 0, op: "SCMP_CMP_MASKED_EQ" }];
    expect(rulesOf("clone")).toEqual(masked(CLONE_NEW));
    const cloneNewTime = 0x80;
    expect(rulesOf("unshare")).toEqual(masked(CLONE_NEW | cloneNewTime));
  });

  it("changes the limits of the caller alone", () => {
    expect(rulesOf("prlimit64")).toEqual([{ index: 0, value: 0, op: "SCMP_CMP_EQ" }]);
  });

  it.each([
    ["chmod", 1],
    ["fchmod", 1],
    ["fchmodat", 2],
    ["fchmodat2", 2],
    ["mkdir", 1],
    ["mkdirat", 2],
    ["creat", 1],
  ])("%s takes a mode without setuid and setgid bits", (name, index) => {
    expect(rulesOf(name)).toEqual([{ index, value: SETUID_SETGID, valueTwo: 0, op: "SCMP_CMP_MASKED_EQ" }]);
  });

  it.each([
    ["open", 1],
    ["openat", 2],
  ])("%s looks at the mode only where a file may be made", (name, flags) => {
    const creates = 0o100 | 0o20000000;
    expect(rulesOf(name)).toEqual([
      { index: flags, value: creates, valueTwo: 0, op: "SCMP_CMP_MASKED_EQ" },
      { index: flags + 1, value: SETUID_SETGID, valueTwo: 0, op: "SCMP_CMP_MASKED_EQ" },
    ]);
  });

  it.each([
    ["mknod", 1],
    ["mknodat", 2],
  ])("%s makes files, FIFOs and sockets, never devices", (name, index) => {
    const typeAndBits = 0o170000 | SETUID_SETGID;
    expect(rulesOf(name)).toEqual(
      [0, 0o100000, 0o010000, 0o140000].map((valueTwo) => ({
        index,
        value: typeAndBits,
        valueTwo,
        op: "SCMP_CMP_MASKED_EQ",
      })),
    );
  });

  it("allows the personalities every engine does, and not the one that turns address randomisation off", () => {
    expect(rulesOf("personality").map((rule) => rule?.value)).toEqual([0, 8, 0x20000, 0x20008, 0xffffffff]);
  });

  it("is handed to the engine as one line of the same JSON", async () => {
    const text = await loadSeccompProfile("brig");
    expect(text).not.toContain("\n");
    expect(JSON.parse(text)).toEqual(profile);
  });

  it("that is missing or broken is an error, never an absent filter", async () => {
    const folder = await mkdtemp(join(tmpdir(), "brig-seccomp-"));
    try {
      await expect(loadSeccompProfile("brig", folder)).rejects.toMatchObject({ code: "policy.invalid" });
      await writeFile(join(folder, "seccomp.json"), "{");
      await expect(loadSeccompProfile("brig", folder)).rejects.toMatchObject({ code: "policy.invalid" });
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});

describe("the filter of danger-full-access", () => {
  const rules = (one: typeof profile, name: string) =>
    one.syscalls
      .filter(({ names }) => names.includes(name))
      .map(({ action, errnoRet, args }) => ({ action, errnoRet, args }));

  it("allows all that the other one does", () => {
    const missing = allowed.filter((name) => !forRoot.syscalls[0]?.names.includes(name));
    expect(missing).toEqual([]);
  });

  it.each([
    "socket",
    "socketpair",
    "setpriority",
    "sched_setscheduler",
    "sched_setaffinity",
    "io_setup",
    "fcntl",
    "renameat2",
    "clone",
    "clone3",
    "unshare",
  ])("has the same to say of %s", (name) => expect(rules(forRoot, name)).toEqual(rules(profile, name)));

  it("makes no device, and any other file with any bits", () => {
    const types = rules(forRoot, "mknodat").map(({ args }) => args?.[0]);
    expect(types).toEqual(
      [0, 0o100000, 0o010000, 0o140000].map((valueTwo) => ({
        index: 2,
        value: 0o170000,
        valueTwo,
        op: "SCMP_CMP_MASKED_EQ",
      })),
    );
  });

  it("lets root debug, set bits and change its root, as an engine does", () => {
    const named = forRoot.syscalls[0]?.names ?? [];
    for (const name of ["ptrace", "chmod", "fchmodat", "openat", "openat2", "chroot", "prlimit64"])
      expect(named).toContain(name);
  });

  it("names nothing of the kernel's own state, nor what no task needs", () => {
    const named = forRoot.syscalls.flatMap(({ names }) => names);
    for (const name of [
      "io_uring_setup",
      "io_submit",
      "bpf",
      "keyctl",
      "mount",
      "setns",
      "init_module",
      "userfaultfd",
      "syslog",
    ])
      expect(named).not.toContain(name);
    expect(forRoot).toMatchObject({ defaultAction: "SCMP_ACT_ERRNO", archMap: profile.archMap });
  });
});
