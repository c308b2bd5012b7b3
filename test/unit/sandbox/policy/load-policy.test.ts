import { execFileSync } from "node:child_process";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { stringify } from "smol-toml";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { BrigError } from "../../../../src/errors.js";
import { compiledPolicies } from "../../../../src/sandbox/policy/compiled-policies.js";
import { loadPolicy } from "../../../../src/sandbox/policy/load-policy.js";
import { isSandboxMode, SANDBOX_MODES } from "../../../../src/sandbox/policy/modes.js";
import { parsePolicy } from "../../../../src/sandbox/policy/parse-policy.js";
import { policySchema } from "../../../../src/sandbox/policy/policy.js";
import { policyDirectory } from "../../../../src/sandbox/policy/policy-directory.js";

let folder: string;
let readOnly: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "brig-policy-"));
  readOnly = await readFile(join(policyDirectory, "read-only.toml"), "utf8");
});
afterAll(async () => await rm(folder, { recursive: true }));

async function failure(attempt: Promise<unknown>): Promise<BrigError> {
  const error = await attempt.then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(BrigError);
  expect((error as BrigError).code).toBe("policy.invalid");
  expect((error as BrigError).hint).toBeTruthy();
  return error as BrigError;
}

async function failureOf(toml: string): Promise<string> {
  return (await failure((async () => parsePolicy(toml, "given.toml"))())).message;
}

describe("a policy that was parsed when brig was compiled", () => {
  /** This list is filled in by the build. When brig runs from its sources, it is empty. */
  const compiled = compiledPolicies as { toml: string; json: string }[];
  afterEach(() => {
    compiled.length = 0;
  });

  it.each(SANDBOX_MODES)("is the same as JSON: %s", async (mode) => {
    const { policy } = await loadPolicy(mode);
    expect(JSON.parse(JSON.stringify(policy))).toStrictEqual(policy);
  });

  it("is taken for a file with exactly this text, and no other", async () => {
    const file = join(folder, "compiled.toml");
    await writeFile(file, readOnly);
    const policy = parsePolicy(readOnly.replace("pids = 1024", "pids = 99"), file);
    compiled.push({ toml: readOnly, json: JSON.stringify(policy) });
    expect((await loadPolicy(file)).policy.limits.pids).toBe(99);
    await writeFile(file, readOnly.replace("pids = 1024", "pids = 98"));
    expect((await loadPolicy(file)).policy.limits.pids).toBe(98);
    await writeFile(file, `${readOnly}\nmore = 1`);
    expect((await failure(loadPolicy(file))).message).toContain("more is not a field of a policy");
  });
});

describe("the modes that come with brig", () => {
  const hardened = {
    rootfs: "ro",
    network: { kind: "none" },
    user: "host",
    capabilities: "none",
    noNewPrivileges: true,
    seccomp: "brig",
  };

  it("read-only leaves the workspace as it is and takes no flag that loosens it", async () => {
    const { policy } = await loadPolicy("read-only");
    expect(policy).toMatchObject({ ...hardened, workspace: { access: "ro", protected: [] } });
    expect(policy.overrides).toEqual({ network: false, writableRoots: false });
  });

  it("workspace-write opens the workspace but for the names that steer git and agents", async () => {
    const { policy } = await loadPolicy("workspace-write");
    expect(policy).toMatchObject({
      ...hardened,
      workspace: { access: "rw", protected: [".git", ".codex", ".agents", ".brig"] },
      overrides: { network: true, writableRoots: true },
    });
  });

  it("danger-full-access is root with a network and the engine's own defaults", async () => {
    const { policy } = await loadPolicy("danger-full-access");
    expect(policy).toMatchObject({
      rootfs: "rw",
      network: { kind: "full" },
      user: "root",
      capabilities: "full-access",
      noNewPrivileges: false,
      seccomp: "full-access",
      workspace: { access: "rw", protected: [] },
      tmpfs: [],
    });
  });

  it("each has limits and no core dumps", async () => {
    for (const mode of SANDBOX_MODES) {
      const { limits } = (await loadPolicy(mode)).policy;
      expect(Object.values(limits).every((limit) => Number.isFinite(limit))).toBe(true);
      expect(limits).toMatchObject({ coreMb: 0, memoryMb: 4096 });
    }
  });

  it("the two hardened ones have /tmp, /run and home in memory, /run without programs", async () => {
    for (const mode of ["read-only", "workspace-write"]) {
      const { tmpfs, home } = (await loadPolicy(mode)).policy;
      expect(tmpfs.map(({ path, exec, mode }) => [path, exec, mode])).toEqual([
        ["/tmp", true, "1777"],
        [home, true, "700"],
        ["/run", false, "755"],
      ]);
    }
  });
});

describe("a name that is no mode", () => {
  it.each(["", "rw", "Read-Only", "workspace_write", "toString", "danger-full-access "])(
    "%j is refused",
    async (name) => {
      expect(isSandboxMode(name)).toBe(false);
      expect((await failure(loadPolicy(name))).hint).toContain(
        "read-only, workspace-write, danger-full-access",
      );
    },
  );
});

describe("a policy file", () => {
  it("is read from the path given and named by it", async () => {
    const file = join(folder, "mine.toml");
    await writeFile(file, readOnly);
    const loaded = await loadPolicy(file);
    expect(loaded).toMatchObject({ name: file, file });
    expect(loaded.policy).toEqual((await loadPolicy("read-only")).policy);
  });

  it("that is missing is an error, not a default", async () => {
    expect((await failure(loadPolicy(join(folder, "nowhere.toml")))).message).toContain("does not exist");
  });

  it("that cannot be read says why", async () => {
    const file = join(folder, "closed.toml");
    await writeFile(file, readOnly, { mode: 0o000 });
    await chmod(file, 0o000);
    if (process.getuid?.() === 0) expect((await loadPolicy(file)).name).toBe(file);
    else expect((await failure(loadPolicy(file))).message).toContain("EACCES");
  });

  it.each([
    ["/dev/zero", "is not a regular file"],
    ["/", "is a directory"],
  ])("that is no regular file is refused: %s", async (path, reason) => {
    expect((await failure(loadPolicy(path))).message).toContain(reason);
  });

  it("that is a FIFO is refused at once", async () => {
    const fifo = join(folder, "pipe.toml");
    execFileSync("mkfifo", [fifo]);
    expect((await failure(loadPolicy(fifo))).message).toContain("not a regular file");
  });

  it("that is too large is refused", async () => {
    const file = join(folder, "large.toml");
    await writeFile(file, "#".repeat(1024 * 1024 + 1));
    expect((await failure(loadPolicy(file))).message).toContain("longer than 1.0 MiB");
  });

  it("that is not text is refused", async () => {
    const file = join(folder, "binary.toml");
    await writeFile(file, Buffer.from([0xff, 0xfe, 0x00]));
    expect((await failure(loadPolicy(file))).message).toContain("not UTF-8");
  });
});

describe("a policy's text", () => {
  it("with a TOML error names line and column", async () => {
    expect(await failureOf('rootfs = "ro"\nnetwork = \n')).toMatch(/given\.toml:2:\d+ is not TOML/);
  });

  it("with an unknown key is refused, at the top and inside", async () => {
    expect(await failureOf(`netwrok = "none"\n${readOnly}`)).toContain(
      "netwrok is not a field of a policy; did you mean network?",
    );
    expect(await failureOf(readOnly.replace("cpus = 4", "cpus = 4\ncpu = 4"))).toContain(
      "limits.cpu is not a field of a policy; did you mean cpus?",
    );
  });

  it("with a wrong type names the field", async () => {
    expect(await failureOf(readOnly.replace("pids = 1024", 'pids = "many"'))).toContain("limits.pids");
    expect(await failureOf(readOnly.replace("exec = true", "exec = 1"))).toContain("tmpfs[0].exec");
  });

  it("without any one of its fields is refused", async () => {
    const whole = (await parsedReadOnly()) as Record<string, unknown>;
    for (const field of Object.keys(whole)) {
      const { [field]: _, ...rest } = whole;
      expect(policySchema.safeParse(rest).success, field).toBe(false);
    }
  });

  it("is told what is wrong with it in words, with the place of the list of fields", async () => {
    const told = async (before: string, after: string) =>
      (await failureOf(readOnly.replace(before, after))) ?? "";
    expect(await told('network = "none"\n', "")).toMatch(/not a valid policy:\n {2}network is missing$/);
    expect(await told("pids = 1024", 'pids = "many"')).toContain("\n  limits.pids must be a number");
    expect(await told("pids = 1024", "pids = 1")).toContain("\n  limits.pids must be 16 or more");
    expect(await told("pids = 1024", "pid = 1024")).toMatch(
      /limits\.pids is missing\n {2}limits\.pid is not a field of a policy; did you mean pids\?/,
    );
    expect(await told('rootfs = "ro"', 'rootfs = "read"')).toContain('\n  rootfs must be "ro" or "rw"');
    const refused = await Promise.resolve()
      .then(() => parsePolicy("", "/p.toml"))
      .catch((error: { hint: string }) => error.hint);
    expect(refused).toMatch(/ \/.*\/sandbox-policies\/README\.md lists them$/);
  });

  it("is refused empty", async () => {
    expect(await failureOf("")).toContain("not a valid policy");
  });

  it.each([
    ["a user name", 'user = "host"', 'user = "alice"', "user"],
    ["a network that is none", 'network = "none"', 'network = "off"', "network"],
    ["a host name with a NUL", 'network = "none"', 'network = "allowlist:evil\\u0000.github.com"', "network"],
    ["a protected path", "protected = []", 'protected = [".git/hooks"]', "workspace.protected"],
    ["a protected parent", "protected = []", 'protected = [".."]', "workspace.protected"],
    ["a relative tmpfs", 'path = "/tmp"', 'path = "tmp"', "tmpfs[0].path"],
    ["a tmpfs on /", 'path = "/tmp"', 'path = "/"', "tmpfs[0].path"],
    ["a tmpfs that climbs", 'path = "/tmp"', 'path = "/tmp/../etc"', "tmpfs[0].path"],
    ["a tmpfs with mount options in its name", 'path = "/tmp"', 'path = "/tmp,exec"', "tmpfs[0].path"],
    ["setuid permission bits", 'mode = "1777"', 'mode = "4777"', "tmpfs[0].mode"],
    ["no memory", "memoryMb = 4096", "memoryMb = 0", "limits.memoryMb"],
    ["unlimited memory", "memoryMb = 4096", "memoryMb = inf", "limits.memoryMb"],
    ["less than no processes", "pids = 1024", "pids = -1", "limits.pids"],
  ])("with %s is refused", async (_, before, after, field) => {
    expect(readOnly).toContain(before);
    expect(await failureOf(readOnly.replace(before, after))).toContain(`\n  ${field}`);
  });

  it("whose memory file systems could take more than half the memory is refused", async () => {
    const message = await failureOf(readOnly.replace("memoryMb = 4096", "memoryMb = 3072"));
    expect(message).toContain("1952 MiB, more than half of 3072 MiB");
  });

  it("with a read-only root and a home that is no tmpfs is refused", async () => {
    expect(await failureOf(readOnly.replace('home = "/home/brig"', 'home = "/root"'))).toContain("\n  home");
  });

  it("with two tmpfs at one path is refused", async () => {
    const message = await failureOf(readOnly.replace('path = "/run"', 'path = "/tmp"'));
    expect(message).toMatch(/^ {2}tmpfs\b.*same path/m);
  });

  it("may name an allow-list, which is parsed here and refused where it cannot be enforced", async () => {
    const policy = parsePolicy(
      readOnly.replace('network = "none"', 'network = "allowlist:API.github.com, *.npmjs.org:443"'),
      "given.toml",
    );
    expect(policy.network).toEqual({ kind: "allowlist", hosts: ["api.github.com", "*.npmjs.org:443"] });
  });

  it.each([
    ["capabilities", ["none", "full-access", "engine-default"]],
    ["seccomp", ["brig", "full-access", "engine-default"]],
  ] as const)("takes each way of %s there is, and no other", async (field, ways) => {
    const whole = (await parsedReadOnly()) as Record<string, unknown>;
    for (const way of ways) expect(policySchema.parse({ ...whole, [field]: way })[field]).toBe(way);
    for (const way of ["", "None", "all", "engine-default "])
      expect(policySchema.safeParse({ ...whole, [field]: way }).success, way).toBe(false);
  });

  it("never becomes a policy when a key is added anywhere or a value is replaced by something else", async () => {
    const whole = (await parsedReadOnly()) as Record<string, unknown>;
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), fc.constantFrom(...Object.keys(whole)), (key, field) => {
        fc.pre(!(key in whole) && key !== "__proto__");
        expect(policySchema.safeParse({ ...whole, [key]: 1 }).success).toBe(false);
        expect(policySchema.safeParse({ ...whole, [field]: { [key]: 1 } }).success).toBe(false);
      }),
    );
  });

  it("survives being written and read again", async () => {
    const whole = (await parsedReadOnly()) as Record<string, unknown>;
    expect(parsePolicy(stringify(whole), "again.toml")).toEqual((await loadPolicy("read-only")).policy);
  });
});

it("every field of the schema says what it means", () => {
  const undescribed: string[] = [];
  const walk = (schema: { properties?: object; items?: object; description?: string }, path: string) => {
    for (const [name, field] of Object.entries(schema.properties ?? {})) {
      if (!field.description) undescribed.push(`${path}.${name}`);
      walk(field, `${path}.${name}`);
      if (field.items) walk(field.items, `${path}.${name}[]`);
    }
  };
  walk(z.toJSONSchema(policySchema, { io: "input" }) as object, "policy");
  expect(undescribed).toEqual([]);
});

async function parsedReadOnly(): Promise<unknown> {
  const { parse } = await import("smol-toml");
  return parse(readOnly);
}
