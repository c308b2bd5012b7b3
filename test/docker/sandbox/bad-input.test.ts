import { mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect } from "vitest";
import type { Engine } from "../../../src/sandbox/docker/engine-types.js";
import { readSessionLabels } from "../../../src/sandbox/labels.js";
import type { ExecOptions, ExecResult } from "../../../src/sandbox/sandbox-types.js";
import { testEngine } from "../../support/engine.js";
import type { TestSandboxOptions } from "../../support/open-sandbox.js";
import { differs, isPodman, titled } from "../../support/runtime-differences.js";
import { sandboxTest } from "../../support/sandbox.js";

const failureOf = async (call: Promise<unknown>) =>
  await call.then(
    () => ["no failure"],
    (error) => [error.code, error.message],
  );

describe("a command that no kernel could run", () => {
  const cases: [string, unknown, ExecOptions][] = [
    ["no command at all", [], {}],
    ["an empty program name", [""], {}],
    ["no list", "ls -l", {}],
    ["an argument that is no string", ["echo", 5], {}],
    ["NUL in the program", ["ec\0ho"], {}],
    ["NUL in an argument", ["echo", "a\0b"], {}],
    ["NUL in a variable", ["env"], { env: { NAME: "a\0b" } }],
    ["NUL in a variable's name", ["env"], { env: { "NA\0ME": "a" } }],
    ["a variable without a name", ["env"], { env: { "": "a" } }],
    ["an equals sign in a variable's name", ["env"], { env: { "A=B": "a" } }],
    ["an argument of 128 KiB", ["echo", "x".repeat(131_072)], {}],
    ["a variable of 128 KiB", ["env"], { env: { NAME: "x".repeat(131_070) } }],
    [
      "more arguments than one request holds",
      ["echo", ...Array.from({ length: 50 }, () => "x".repeat(100_000))],
      {},
    ],
    ["a timeout of zero", ["true"], { timeoutMs: 0 }],
    ["a timeout that is no number", ["true"], { timeoutMs: Number.NaN }],
    ["a timeout beyond all measure", ["true"], { timeoutMs: 1e15 }],
    ["a negative budget for output", ["true"], { maxOutputBytes: -1 }],
    ["a budget that is no number", ["true"], { maxOutputBytes: Number.NaN }],
  ];
  sandboxTest.for(cases)("%s", async ([, argv, options], { sandbox }) => {
    const [code, message] = await failureOf(sandbox.exec(argv as string[], options));
    expect(code).toBe("exec.invalid");
    expect(message.length).toBeLessThan(300);
    expect((await sandbox.exec(["echo", "fine"])).stdout).toBe("fine\n");
  });
});

sandboxTest("an option that there is not, of every call", async ({ sandbox }) => {
  const slip = { timeout: 5 } as object;
  const calls: [string, () => Promise<unknown>][] = [
    ["sandbox.exec", () => sandbox.exec(["true"], slip)],
    ["sandbox.spawn", () => sandbox.spawn(["true"], slip)],
    ["files.read", () => sandbox.files.read("/etc/passwd", slip)],
    ["files.write", () => sandbox.files.write("/tmp/x", "", slip)],
    ["files.stat", () => sandbox.files.stat("/tmp", slip)],
    ["files.list", () => sandbox.files.list("/tmp", slip)],
    ["files.mkdir", () => sandbox.files.mkdir("/tmp/d", slip)],
    ["files.rename", () => sandbox.files.rename("/tmp/x", "/tmp/y", slip)],
    ["files.remove", () => sandbox.files.remove("/tmp/x", slip)],
  ];
  for (const [of, call] of calls)
    expect(await failureOf(call())).toEqual(["usage.invalid", `${of} has no option "timeout"`]);
});

sandboxTest.skipIf(differs("exec.argument-limit"))(
  titled("exec.argument-limit", "three megabytes of arguments are more than the kernel takes"),
  async ({ sandbox }) => {
    const argv = ["echo", ...Array.from({ length: 30 }, () => "x".repeat(100_000))];
    await expect(sandbox.exec(argv)).rejects.toMatchObject({ code: "exec.invalid" });
  },
);

describe("a working directory that cannot be", () => {
  sandboxTest.for([
    ["missing", "/no/such/place", "ENOENT"],
    ["a file", "/etc/passwd", "ENOTDIR"],
    ["not to be entered", "/tmp/locked", "EACCES"],
    ["relative", "src", "not an absolute path"],
    ["empty", "", "not an absolute path"],
    ["too long", `/${"x".repeat(300)}`, "ENAMETOOLONG"],
  ])("%s", async ([, cwd, reason], { sandbox }) => {
    await sandbox.exec(["sh", "-c", "mkdir -p /tmp/locked; chmod 0 /tmp/locked"]);
    const [code, message] = await failureOf(sandbox.exec(["pwd"], { cwd }));
    expect(code).toBe("exec.bad-cwd");
    expect(message).toContain(reason);
  });

  sandboxTest("with a NUL in its name", async ({ sandbox }) => {
    expect((await failureOf(sandbox.exec(["pwd"], { cwd: "/tmp\0/x" })))[0]).toBe("exec.invalid");
  });
});

describe("a program that cannot be started is a result", () => {
  sandboxTest("not found: 127", async ({ sandbox }) => {
    expect(await sandbox.exec(["no-such-program"])).toMatchObject({
      exitCode: 127,
      signal: null,
      stdout: "",
      stderr: "brig: no-such-program: command not found\n",
    });
    expect((await sandbox.exec(["/no/such/program"])).exitCode).toBe(127);
    expect((await sandbox.exec(["/etc/passwd/program"])).exitCode).toBe(127);
  });

  sandboxTest("not executable, or a directory: 126", async ({ sandbox, workspace }) => {
    await sandbox.files.write(`${workspace}/plain`, "#!/bin/sh\n");
    expect(await sandbox.exec([`${workspace}/plain`])).toMatchObject({
      exitCode: 126,
      stderr: `brig: ${workspace}/plain: permission denied\n`,
    });
    expect((await sandbox.exec(["/usr"])).exitCode).toBe(126);
  });

  sandboxTest("of no known format: 126", async ({ sandbox, workspace }) => {
    await sandbox.files.write(`${workspace}/broken`, Buffer.from("\x7fELF\x02\x01\x01 and then nothing"), {
      mode: 0o755,
    });
    expect((await sandbox.exec([`${workspace}/broken`])).exitCode).toBeGreaterThanOrEqual(126);
  });

  sandboxTest("a script without its interpreter: 127", async ({ sandbox, workspace }) => {
    await sandbox.files.write(`${workspace}/script`, "#!/no/such/interpreter\n", { mode: 0o755 });
    expect((await sandbox.exec([`${workspace}/script`])).exitCode).toBe(127);
  });

  sandboxTest.skipIf(differs("exec.text-busy"))(
    titled("exec.text-busy", "a program that is being written: 126"),
    async ({ sandbox, workspace }) => {
      const script = `cp /bin/true ${workspace}/busy; exec 3>>${workspace}/busy; echo ready; read -r _`;
      const holder = await sandbox.spawn(["bash", "-c", script]);
      await new Promise((resolve) => holder.stdout.once("data", resolve));
      expect(await sandbox.exec([`${workspace}/busy`])).toMatchObject({ exitCode: 126 });
      holder.stdin!.end();
      await holder.exit;
    },
  );
});

describe("a sandbox that cannot be", () => {
  const cases: [string, (directory: string) => Promise<TestSandboxOptions>, string][] = [
    ["of an image that is not there", async () => ({ image: "brig/never-made:1" }), "image.missing"],
    ["of an image name that is none", async () => ({ image: "UPPER CASE" }), "usage.invalid"],
    [
      "on a runtime that is not there",
      async () => ({ runtime: "no-such-runtime" }),
      // brig runs nothing on Podman with a runtime that is not its default.
      isPodman ? "policy.not-enforced" : "usage.invalid",
    ],
    ["in a workspace that is not there", async (at) => ({ workspace: `${at}/missing` }), "workspace.invalid"],
    ["in a workspace that is a file", async (at) => ({ workspace: await file(at) }), "workspace.invalid"],
    [
      "in a workspace that is a link to /etc",
      async (at) => ({ workspace: await link(at, "/etc") }),
      "workspace.invalid",
    ],
    ["in /", async () => ({ workspace: "/" }), "workspace.invalid"],
    ["in a relative workspace", async () => ({ workspace: "src" }), "workspace.invalid"],
    ["in a mode that is none", async () => ({ mode: "yolo" as "read-only" }), "policy.invalid"],
    [
      "under a policy file that is not there",
      async (at) => ({ policyFile: `${at}/p.toml` }),
      "policy.invalid",
    ],
    ["under a policy file that is broken", async (at) => ({ policyFile: await file(at) }), "policy.invalid"],
    [
      "under a mode and a policy file",
      async (at) => ({ mode: "read-only", policyFile: await file(at) }),
      "usage.invalid",
    ],
    ["with a network that is none", async () => ({ network: "sometimes" }), "usage.invalid"],
    [
      "with a network its policy forbids",
      async () => ({ mode: "read-only", network: "full" }),
      "usage.invalid",
    ],
    [
      "with an added directory that is not there",
      async (at) => ({ addDirs: [`${at}/missing`] }),
      "workspace.invalid",
    ],
    [
      "with a protected name that is a link",
      async (at) => ({ workspace: await withLink(at) }),
      "policy.not-enforced",
    ],
  ];
  sandboxTest.for(cases)("%s", async ([, makeOptions, expected], { open, directory }) => {
    const engine = await testEngine();
    const before = await ownContainers(engine);
    const [code] = await failureOf(open(await makeOptions(directory)));
    expect(code).toBe(expected);
    expect(await ownContainers(engine)).toEqual(before);
  });

  sandboxTest("because it was called off: at every moment nothing is left", async ({ open, directory }) => {
    const engine = await testEngine();
    const before = await ownContainers(engine);
    for (const afterMs of [0, 10, 25, 50, 75, 100, 150, 200]) {
      const reason = new Error("enough");
      const controller = new AbortController();
      setTimeout(() => controller.abort(reason), afterMs);
      await open({ workspace: directory, signal: controller.signal }).then(
        (sandbox) => sandbox.close(),
        (error) => expect(error).toBe(reason),
      );
    }
    expect(await ownContainers(engine)).toEqual(before);
    expect(await readdir(directory)).toEqual([]);
  });
});

describe("a sandbox that was closed", () => {
  sandboxTest("says so to what was running and to what comes later", async ({ open }) => {
    const sandbox = await open();
    const running: Promise<ExecResult> = sandbox.exec(["sleep", "301"]);
    const reading = sandbox.files.read("/dev/shm", { lengthBytes: 1 }).catch(() => undefined);
    await sleep(50);
    const [ended] = await Promise.all([failureOf(running), reading, sandbox.close(), sandbox.close()]);
    expect(ended[0]).toBe("sandbox.gone");
    for (const call of [
      () => sandbox.exec(["true"]),
      () => sandbox.spawn(["true"]),
      () => sandbox.files.read("/etc/passwd"),
      () => sandbox.ping(),
    ])
      await expect(call()).rejects.toMatchObject({ code: "sandbox.gone", reason: "closed" });
    await sandbox.close();
  });
});

async function ownContainers(engine: Engine): Promise<string[]> {
  const all = await engine.listContainers(["brig.session"]);
  return all.filter(({ labels }) => readSessionLabels(labels)?.owner.pid === process.pid).map(({ id }) => id);
}

async function file(directory: string): Promise<string> {
  const path = join(directory, "file.toml");
  await writeFile(path, "rootfs = [broken");
  return path;
}

async function link(directory: string, target: string): Promise<string> {
  const path = join(directory, "link");
  await symlink(target, path);
  return path;
}

async function withLink(directory: string): Promise<string> {
  await mkdir(join(directory, "elsewhere"));
  await symlink("elsewhere", join(directory, ".git"));
  return directory;
}
