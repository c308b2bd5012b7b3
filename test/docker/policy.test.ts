import { execFile } from "node:child_process";
import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { release } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ContainerBody, Engine } from "../../src/sandbox/docker/engine-types.js";
import type { SandboxPlan } from "../../src/sandbox/plan/plan.js";
import { planSandbox, type SandboxRequest } from "../../src/sandbox/plan/plan-sandbox.js";
import { loadPolicy } from "../../src/sandbox/policy/load-policy.js";
import { SANDBOX_MODES } from "../../src/sandbox/policy/modes.js";
import { proveSandbox } from "../../src/sandbox/proof/proof.js";
import { promised } from "../guarantees.js";
import { testEngine } from "../support/engine.js";
import { HOST_USERS, type HostUser } from "../support/host-users.js";
import { type RawContainer, startRawContainer } from "../support/raw-container.js";
import { differs, titled } from "../support/runtime-differences.js";
import { type TemporaryDirectory, temporaryDirectory } from "../support/sandbox.js";

const hostUser = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
let engine: Engine;
let directory: TemporaryDirectory;
let workspace: string;

beforeAll(async () => {
  engine = await testEngine();
  directory = await temporaryDirectory();
  workspace = join(directory.path, "repo");
  await mkdir(join(workspace, ".git"), { recursive: true });
});
afterAll(async () => await directory[Symbol.asyncDispose]());

async function planFor(wanted: Partial<SandboxRequest> & { mode?: string } = {}): Promise<SandboxPlan> {
  const { mode = "workspace-write", ...rest } = wanted;
  return await planSandbox({
    policy: await loadPolicy(mode),
    workspace,
    image: "brig/base",
    addDirs: [],
    writableRoots: [],
    env: {},
    hostUser,
    leaseSeconds: 60,
    keep: false,
    sessionId: "policy-test",
    labels: {},
    engine: await engine.info(),
    endpoint: engine.endpoint,
    host: { homeDirectory: null },
    ...rest,
  });
}

async function proofOf(plan: SandboxPlan, weaken?: (body: ContainerBody) => void) {
  await using container = await startRawContainer(engine, plan, weaken);
  return await proofIn(container, plan);
}

async function proofIn(container: RawContainer, plan: SandboxPlan) {
  const context = { engine: await engine.info(), imageId: "", hostKernel: release() };
  return proveSandbox(plan, await container.report(), context);
}

describe("the engine enforces", () => {
  describe.each(HOST_USERS)("for uid $uid", (hostUser) => {
    it.each(SANDBOX_MODES)("all that %s promises, by what the kernel says inside", async (mode) => {
      const plan = await planFor({ mode, hostUser });
      expect(await proofOf(plan)).toMatchObject({ differences: [], notProvable: [] });
    });

    it(promised("contained.network", "the same without a workspace"), async () => {
      const [uid, gid] = [`${hostUser.uid}`, `${hostUser.gid}`];
      expect(await proofOf(await planFor({ workspace: null, hostUser }))).toMatchObject({
        differences: [],
        summary: { uid, gid, groups: gid, interfaces: "lo", seccompMode: "2" },
      });
    });
  });

  it("the same with a network", async () => {
    const loaded = await loadPolicy("workspace-write");
    const policy = { ...loaded, policy: { ...loaded.policy, network: { kind: "full" as const } } };
    const proof = await proofOf(await planFor({ policy }));
    expect(proof.differences).toEqual([]);
    expect(proof.summary.interfaces).toContain("eth0");
  });

  it.each(["a:b,c d", "quotes'\"`$(id)", "back\\slash\ttab", "größe-日本", "-rf", "readonly,source="])(
    "the same for a workspace called %j",
    async (name) => {
      const odd = join(directory.path, name);
      await mkdir(join(odd, ".git"), { recursive: true });
      const plan = await planFor({ workspace: odd });
      await using container = await startRawContainer(engine, plan);
      await container.exec(["touch", join(odd, "made inside")]);
      expect(await readdir(odd)).toContain("made inside");
      expect(await proofIn(container, plan)).toMatchObject({ differences: [] });
    },
  );

  it("the same for a workspace inside a tmpfs of the policy", async () => {
    const loaded = await loadPolicy("workspace-write");
    const [tmp] = loaded.policy.tmpfs;
    const around = { ...tmp!, path: directory.path, sizeMb: 16 };
    const policy = { ...loaded, policy: { ...loaded.policy, tmpfs: [...loaded.policy.tmpfs, around] } };
    const plan = await planFor({ policy });
    expect(plan.tmpfs.map(({ path }) => path)).toContain(directory.path);
    await using container = await startRawContainer(engine, plan);
    await container.exec(["touch", join(workspace, "nested")]);
    expect(await readdir(workspace)).toContain("nested");
    expect(await proofIn(container, plan)).toMatchObject({ differences: [] });
  });
});

describe("a mount of the host's below the workspace", () => {
  const canMount = hostUser.uid === 0 && process.platform === "linux";

  const isMounted =
    "comes with a writable workspace and is never writable in a read-only one [needs root, to mount]";
  it.runIf(canMount)(isMounted, async () => {
    await using outer = await temporaryDirectory();
    const data = join(outer.path, "data");
    await mkdir(data);
    await promisify(execFile)("mount", ["-t", "tmpfs", "-o", "size=1m", "none", data]);
    try {
      const plan = await planFor({ workspace: outer.path });
      await using container = await startRawContainer(engine, plan);
      await container.exec(["touch", join(data, "new")]);
      expect(await readdir(data)).toEqual(["new"]);
      expect((await proofIn(container, plan)).differences).toEqual([]);
      const closed = planFor({ workspace: outer.path, mode: "read-only" });
      // Since Docker 25 read-only applies to mounts below as well.
      if (Number.parseInt((await engine.info()).version, 10) >= 25) {
        await using again = await startRawContainer(engine, await closed);
        expect((await again.exec(["touch", join(data, "more")])).output).toContain("Read-only file system");
      } else {
        await expect(closed).rejects.toMatchObject({
          code: "workspace.invalid",
          message: expect.stringContaining(data),
        });
      }
    } finally {
      await promisify(execFile)("umount", [data]);
    }
  });
});

describe("a container weaker than its plan is told by the read-back:", () => {
  const host = (change: (config: ContainerBody["HostConfig"] & Record<string, unknown>) => void) => {
    return (body: ContainerBody) =>
      change(body.HostConfig as ContainerBody["HostConfig"] & Record<string, unknown>);
  };

  it.each<[string, string[], (body: ContainerBody) => void]>([
    [
      "the engine's filter",
      ["A10-setuid-bits", "N-system-calls"],
      host((config) => (config.SecurityOpt = ["no-new-privileges"])),
    ],
    [
      "no filter",
      ["A10-setuid-bits", "A5-seccomp", "N-system-calls"],
      host((config) => (config.SecurityOpt = ["no-new-privileges", "seccomp=unconfined"])),
    ],
    ["new privileges", ["A4-no-new-privileges"], host((config) => void config.SecurityOpt.shift())],
    ["the engine's capabilities", ["A3-capabilities"], host((config) => (config.CapDrop = []))],
    ["one capability", ["A3-capabilities"], host((config) => (config.CapAdd = ["NET_ADMIN"]))],
    ["another user", ["A6-user"], (body) => (body.User = "4711:4711")],
    ["another group", ["A6-user"], (body) => (body.User = `${hostUser.uid}:4711`)],
    ["a further group", ["A6-user"], host((config) => (config.GroupAdd = ["4711"]))],
    ["a variable of the image's", ["A21-environment"], (body) => void body.Env.push("LD_PRELOAD=/etc/x.so")],
    ["another host name", ["A9-hostname"], (body) => (body.Hostname = "elsewhere")],
    [
      "writable kernel settings",
      ["A11-kernel-settings", ...(differs("policy.dev") ? [] : ["B18-devices"])],
      host((config) => (config.ReadonlyPaths = [])),
    ],
    [
      "shared memory that outlives its users",
      ["F17-ipc"],
      host((config) => void delete config.Sysctls?.["kernel.shm_rmid_forced"]),
    ],
    [
      "a writable root",
      ["B1-rootfs", "B4-writable-mounts"],
      host((config) => (config.ReadonlyRootfs = false)),
    ],
    [
      "a volume of the image's",
      ["B4-writable-mounts"],
      (body) => Object.assign(body, { Volumes: { "/data": {} } }),
    ],
    [
      "the engine's socket",
      ["B4-writable-mounts"],
      host((config) => config.Mounts.push(bind(new URL(engine.endpoint).pathname, "/docker.sock"))),
    ],
    [
      "a /tmp without limits",
      ["B5-tmpfs"],
      host((config) => (config.Tmpfs["/tmp"] = "rw,nosuid,nodev,exec")),
    ],
    [
      "programs in /run",
      ["B6-noexec"],
      host((config) => (config.Tmpfs["/run"] = config.Tmpfs["/run"]?.replace("noexec", "exec") ?? "")),
    ],
    [
      "a larger /dev/shm",
      ["B5-tmpfs"],
      host((config) => (config.Tmpfs["/dev/shm"] = "rw,nosuid,nodev,noexec,size=256m,nr_inodes=8192")),
    ],
    [
      "a /dev/shm of the engine's",
      [differs("policy.dev") ? "B5-tmpfs" : "F8-inodes"],
      host((config) => void delete config.Tmpfs["/dev/shm"]),
    ],
    [
      "another directory at the workspace's path",
      ["B10-identity"],
      host((config) => (mountAt(config, workspace).Source = directory.path)),
    ],
    [
      "a writable .git",
      ["B11-mounts"],
      host((config) => (mountAt(config, `${workspace}/.git`).ReadOnly = false)),
    ],
    [
      "a .git that was left out",
      ["B11-mounts"],
      host((config) => (config.Mounts = config.Mounts.filter(({ Target }) => !Target.endsWith(".git")))),
    ],
    [
      "another directory where a placeholder was made",
      ["B10-identity"],
      host((config) => (mountAt(config, `${workspace}/.codex`).Source = directory.path)),
    ],
    [
      "a writable toolbox",
      ["B11-mounts", "B4-writable-mounts"],
      host((config) => (mountAt(config, "/.brig").ReadOnly = false)),
    ],
    [
      "a network",
      ["E1-network"],
      (body: ContainerBody) => {
        body.NetworkDisabled = false;
        body.HostConfig.NetworkMode = "bridge";
      },
    ],
    [
      "no memory limit",
      ["F1-limits", "F2-swap"],
      host((config) => {
        delete config.Memory;
        delete config.MemorySwap;
      }),
    ],
    ["swap", ["F2-swap"], host((config) => (config.MemorySwap = (config.Memory ?? 0) * 2))],
    [
      "the engine's own terminals",
      ["F20-terminals"],
      host((config) => (config.Mounts = config.Mounts.filter(({ Target }) => Target !== "/dev/pts"))),
    ],
    ["no process limit", ["F1-limits"], host((config) => delete config.PidsLimit)],
    ["no CPU limit", ["F1-limits"], host((config) => delete config.NanoCpus)],
    ["core dumps and more files", ["F14-resource-limits"], host((config) => (config.Ulimits = []))],
  ])(promised("contained.proof", "%s"), async (_, assertions, weaken) => {
    await expectTold(assertions, weaken);
  });

  it.skipIf(differs("policy.dev"))(
    promised("contained.proof", titled("policy.dev", "a /dev whose devices root could replace")),
    async () => {
      const weaken = host(
        (config) => (config.ReadonlyPaths = config.ReadonlyPaths?.filter((path) => path !== "/dev") ?? []),
      );
      await expectTold(["B18-devices"], weaken);
    },
  );

  async function expectTold(assertions: string[], weaken: (body: ContainerBody) => void): Promise<void> {
    const { differences } = await proofOf(await planFor(), weaken);
    const found = [...new Set(differences.map(({ assertion }) => assertion))].toSorted();
    expect(found, JSON.stringify(differences, null, 1)).toEqual(assertions);
  }
});

describe("the system call filter", () => {
  const controlCapabilities = ["SYS_ADMIN", "SYS_MODULE", "SYS_BOOT", "SYS_PTRACE", "SYS_TIME", "SYS_PACCT"];
  /** As seen by each user of HOST_USERS. */
  let filtered: Map<string, string>[];
  let forRoot: Map<string, string>;
  let control: Map<string, string>;

  beforeAll(async () => {
    const plans = HOST_USERS.map((user) => planFor({ workspace: null, hostUser: user }));
    filtered = await Promise.all(plans.map(async (plan) => await probe(await plan)));
    forRoot = await probe(await planFor({ workspace: null, mode: "danger-full-access" }));
    control = await probe(await planFor({ hostUser: { uid: 0, gid: 0 } }), ({ HostConfig }) => {
      HostConfig.SecurityOpt = ["seccomp=unconfined"];
      HostConfig.CapDrop = [];
      HostConfig.CapAdd = [
        ...controlCapabilities,
        "SYS_RAWIO",
        "DAC_READ_SEARCH",
        "NET_RAW",
        "NET_ADMIN",
        "MKNOD",
      ];
    });
  });

  async function probe(
    plan: SandboxPlan,
    weaken?: (body: ContainerBody) => void,
  ): Promise<Map<string, string>> {
    const script = await readFile(fixture("syscall-probes.pl"), "utf8");
    await using container = await startRawContainer(engine, plan, weaken);
    const { output, exitCode } = await container.exec(["perl", "-e", script]);
    expect(exitCode, output).toBe(0);
    const lines = output
      .trim()
      .split("\n")
      .map((line) => line.split(" "));
    return new Map(lines.map(([name = "", ...answer]) => [name, answer.join(" ")]));
  }

  const scheduling = ["setpriority", "ioprio_set", "sched_setscheduler", "sched_setparam", "sched_setattr"];
  const granted = [
    "mknod-fifo",
    "open-plain",
    "open-existing-any-mode",
    "chmod-plain",
    "unshare-files",
    ...scheduling.map((name) => `${name}-own`),
    // Of libc too, which names the thread. It is answered without effect.
    "sched_setaffinity-other",
    ...["socket-netlink-0", "renameat2-plain", "fcntl-pipe-size", "fcntl-lock"],
  ];
  const openFamilies = [1, 2, 10, 16].map((family) => `socket-${family}`);
  const unknown = ["clone3", "openat2", "io_setup"];

  it("opens sockets of UNIX, INET, INET6 and NETLINK, and of no other family (N2 to N5)", () => {
    for (let family = 0; family <= 60; family++) {
      const name = `socket-${family}`;
      for (const one of [...filtered, forRoot])
        expect([name, one.get(name)]).toEqual([name, openFamilies.includes(name) ? "0" : "1"]);
      expect([name, control.get(name)]).not.toEqual([name, "1"]);
    }
  });

  it("answers as a kernel without them to protocols of NETLINK other than ROUTE, where the host's events arrive", () => {
    const names = [...control.keys()].filter((name) => /^socket-netlink-(?!0$)/.test(name));
    expect(names.length).toBeGreaterThan(20);
    for (const name of names)
      for (const one of [...filtered, forRoot]) expect([name, one.get(name)]).toEqual([name, "93"]);
    expect(control.get("socket-netlink-15")).toBe("0");
  });

  it("keeps root from leaving devices, and from what no task needs, in danger-full-access too", () => {
    const refused = [
      "mknod-device",
      "mknodat-device",
      "mknodat-whiteout",
      "renameat2-whiteout",
      "fcntl-lease",
    ];
    for (const name of [
      ...refused,
      "io_uring_setup",
      "bpf",
      "keyctl",
      "socket-packet-3",
      "fcntl-lease-high-bits",
    ]) {
      expect([name, forRoot.get(name)]).toEqual([name, "1"]);
      expect([name, control.get(name)]).not.toEqual([name, "1"]);
    }
    const bits = [...forRoot.keys()].filter((name) => /-setuid$|-setgid$/.test(name));
    for (const name of [...granted, ...bits, "ptrace", "chroot", "process_vm_readv"])
      expect([name, forRoot.get(name)]).not.toEqual([name, "1"]);
  });

  it(
    promised(
      "contained.system-calls",
      "answers EPERM to everything it refuses, which without it reaches the kernel (N1, N4, N6 to N10, N13, N14)",
    ),
    () => {
      const refused = [...control.keys()].filter(
        (name) =>
          ![...granted, ...openFamilies, ...unknown, "fcntl-lock-of-open-file"].includes(name) &&
          !name.startsWith("socket-netlink-"),
      );
      expect(refused.length).toBeGreaterThan(120);
      for (const name of refused) {
        for (const one of filtered) expect([name, one.get(name)]).toEqual([name, "1"]);
        expect([name, control.get(name)]).not.toEqual([name, "1"]);
      }
    },
  );

  it("answers ENOSYS where callers fall back on an older call (N11)", () => {
    for (const name of unknown) {
      for (const one of filtered) expect([name, one.get(name)]).toEqual([name, "38"]);
      expect([name, control.get(name)]).not.toEqual([name, "38"]);
    }
  });

  it("answers as a kernel without them to what takes of the machine's numbers and counts for nobody", () => {
    for (const [name, answer] of [
      ["io_setup", "38"],
      ["fcntl-lock-of-open-file", "22"],
    ] as const) {
      for (const one of [...filtered, forRoot]) expect([name, one.get(name)]).toEqual([name, answer]);
      expect([name, control.get(name)]).not.toEqual([name, answer]);
    }
  });

  it("lets ordinary forms of the same calls through", () => {
    for (const name of granted)
      for (const one of filtered) expect([name, one.get(name)]).toEqual([name, "0"]);
  });

  it("sets setuid and setgid bits without it, so that their refusal is its own", () => {
    const bits = [...control.keys()].filter((name) => /-setuid|-setgid/.test(name));
    expect(bits.length).toBeGreaterThanOrEqual(20);
    for (const name of bits) expect([name, control.get(name)]).toEqual([name, "0"]);
  });

  const killsDoor = "kills a program that enters by the 32-bit door (N12) [needs an x64 processor]";
  it.runIf(process.arch === "x64")(killsDoor, async () => {
    const command = `echo ${exit42().toString("base64")} | base64 -d > /tmp/32; chmod 755 /tmp/32; /tmp/32; echo "code $?"`;
    const run = async (hostUser: HostUser, weaken?: (body: ContainerBody) => void) => {
      await using container = await startRawContainer(engine, await planFor({ hostUser }), weaken);
      return (await container.exec(["bash", "-c", command])).output;
    };
    for (const user of HOST_USERS) {
      const control = await run(user, ({ HostConfig }) => (HostConfig.SecurityOpt = ["seccomp=unconfined"]));
      const kernelRuns32Bit = control.includes("code 42");
      expect(await run(user)).toContain(kernelRuns32Bit ? "code 159" : "code 126");
    }
  });

  it("lets git, python, node, bash, curl, tar and their like work", async () => {
    const script = await readFile(fixture("workloads.sh"), "utf8");
    for (const user of HOST_USERS) {
      await using container = await startRawContainer(
        engine,
        await planFor({ workspace: null, hostUser: user }),
      );
      const { output, exitCode } = await container.exec(["bash", "-c", script]);
      expect(output.trim().split("\n").at(-1), output).toBe("all done");
      expect(exitCode).toBe(0);
    }
  });
});

describe("a placeholder for an absent .git", () => {
  const git = async (...args: string[]) => (await promisify(execFile)("git", args)).stdout.trim();

  it("does not keep git, inside or outside, from finding the repository further up", async () => {
    await using outer = await temporaryDirectory();
    const child = join(outer.path, "child");
    await mkdir(child);
    await git("init", "-q", outer.path);
    const plan = await planFor({ workspace: child, addDirs: [outer.path] });
    expect(plan.placeholders).toContain(join(child, ".git"));
    await using container = await startRawContainer(engine, plan);
    const inside = await container.exec(["git", "-C", child, "rev-parse", "--show-toplevel"]);
    expect(inside.output.trim()).toBe(outer.path);
    expect(await git("-C", child, "rev-parse", "--show-toplevel")).toBe(outer.path);
    expect((await container.exec(["git", "-C", child, "status", "--short"])).exitCode).toBe(0);
  });

  it("is taken over from a session that was killed, and leaves nothing behind", async () => {
    await using fresh = await temporaryDirectory();
    const plan = await planFor({ workspace: fresh.path });
    for (const path of plan.placeholders) await mkdir(path, { mode: 0o555 });
    const again = await planFor({ workspace: fresh.path });
    expect(again.placeholders).toEqual(plan.placeholders);
    {
      await using container = await startRawContainer(engine, again);
      expect((await container.exec(["touch", join(fresh.path, ".git/x")])).output).toContain("Read-only");
    }
    expect(await readdir(fresh.path)).toEqual([]);
  });
});

describe("a linked worktree", () => {
  it("whose repository is writable too has the repository's .git protected", async () => {
    await using outer = await temporaryDirectory();
    const [main, tree] = [join(outer.path, "main"), join(outer.path, "tree")];
    const git = async (...args: string[]) =>
      await promisify(execFile)("git", [
        "-C",
        main,
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@example",
        ...args,
      ]);
    await mkdir(main);
    await git("init", "-q");
    await writeFile(join(main, "file"), "x");
    await git("add", "file");
    await git("commit", "-qm", "first");
    await git("worktree", "add", "-q", tree);
    const before = await stat(join(main, ".git/hooks"));
    await using container = await startRawContainer(
      engine,
      await planFor({ workspace: tree, addDirs: [main] }),
    );
    for (const path of [
      `${main}/.git/hooks/x`,
      `${main}/.git/worktrees/tree/x`,
      `${main}/.git/config`,
      `${tree}/.git`,
    ])
      expect((await container.exec(["bash", "-c", 'echo x >> "$0"', path])).output).toContain(
        "Read-only file system",
      );
    expect((await container.exec(["touch", join(tree, "new"), join(main, "new")])).exitCode).toBe(0);
    expect((await container.exec(["git", "-C", tree, "log", "--oneline"])).output).toContain("first");
    expect((await stat(join(main, ".git/hooks"))).mtimeMs).toBe(before.mtimeMs);
  });
});

function fixture(name: string): string {
  return fileURLToPath(new URL(`../fixtures/${name}`, import.meta.url));
}

function bind(source: string, target: string): ContainerBody["HostConfig"]["Mounts"][number] {
  return { Type: "bind", Source: source, Target: target, ReadOnly: false };
}

function mountAt(
  config: ContainerBody["HostConfig"],
  target: string,
): ContainerBody["HostConfig"]["Mounts"][number] {
  const mount = config.Mounts.find(({ Target }) => Target === target);
  if (mount === undefined) throw new Error(`nothing is mounted at ${target}`);
  return mount;
}

/** A 32-bit program of 96 bytes: exit(42) through int 0x80. */
function exit42(): Buffer {
  const base = 0x08048000;
  const program = Buffer.alloc(96);
  program.write("\x7fELF\x01\x01\x01", "latin1");
  const halves: [number, number][] = [
    [16, 2],
    [18, 3],
    [40, 52],
    [42, 32],
    [44, 1],
  ];
  for (const [at, value] of halves) program.writeUInt16LE(value, at);
  const words: [number, number][] = [
    [20, 1],
    [24, base + 84],
    [28, 52],
    [52, 1],
    [60, base],
    [64, base],
    [68, 96],
  ];
  for (const [at, value] of [...words, [72, 96], [76, 5], [80, 4096]] as [number, number][])
    program.writeUInt32LE(value, at);
  Buffer.from("bb2a000000b801000000cd80", "hex").copy(program, 84);
  return program;
}
