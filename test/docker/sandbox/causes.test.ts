import { existsSync } from "node:fs";
import { chmod, mkdir } from "node:fs/promises";
import { userInfo } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { execa } from "execa";
import { expect } from "vitest";
import type { Sandbox } from "../../../src/sandbox/sandbox.js";
import type { ExecOptions, ExecResult } from "../../../src/sandbox/sandbox-types.js";
import { forEachHostUser } from "../../support/each-host-user.js";
import { becomeHostUser, OWNING_USERS } from "../../support/host-users.js";
import { changedPolicy } from "../../support/policies.js";
import { differs, titled } from "../../support/runtime-differences.js";
import { sandboxTest, temporaryDirectory } from "../../support/sandbox.js";

const MEMORY_MB = 160;
const small = { memoryMb: MEMORY_MB, sizeMb: 16, shmMb: 8, maxInodes: 500, pids: 64 };

const hog = ["python3", "-c", "x = bytearray(400_000_000); x[::4096] = b'x' * len(x[::4096])"];
const memoryLimit = { kind: "memory-limit", limitBytes: MEMORY_MB * 1024 ** 2 };
const processLimit = { kind: "process-limit", limit: 64 };
const fullTmp = {
  kind: "full-directory",
  path: "/tmp",
  lacks: "bytes",
  limit: 16 * 1024 ** 2,
  wasFull: false,
};

/** Starts processes until that fails, ends them, and exits with the code. bash itself would try again for seconds. */
const fork = (code: number) => `python3 - <<'END'
import os, signal, sys, time
children = []
try:
    for _ in range(100):
        child = os.fork()
        if child == 0:
            time.sleep(60)
            os._exit(0)
        children.append(child)
except OSError as error:
    print(error, file=sys.stderr)
for child in children: os.kill(child, signal.SIGKILL)
sys.exit(${code})
END`;
const fill = (file: string) => `head -c 100000000 /dev/zero > ${file} 2>/dev/null`;

const run = (sandbox: Sandbox, script: string, options?: ExecOptions): Promise<ExecResult> =>
  sandbox.exec(["bash", "-c", script], options);

/** Runs a script until it has printed a line, and returns what ends it. */
async function startReady(sandbox: Sandbox, script: string) {
  const process = await sandbox.spawn(["bash", "-c", script]);
  await new Promise((resolve) => process.stdout.once("data", resolve));
  return process;
}

/** Only root can mount, and a machine may have no loop devices. */
const hasDisks = userInfo().uid === 0 && existsSync("/dev/loop-control");

/** A disk of 8 MiB that everybody may write to. */
async function smallDisk(directory: string): Promise<AsyncDisposable & { path: string }> {
  const [image, disk] = [join(directory, "image"), join(directory, "disk")];
  await mkdir(disk);
  const make = 'truncate -s 8M "$0" && mkfs.ext4 -q "$0" && mount -o loop "$0" "$1"';
  await execa("sh", ["-c", make, image, disk]);
  await chmod(disk, 0o777);
  return {
    path: disk,
    [Symbol.asyncDispose]: async () => void (await execa("sh", ["-c", 'umount -l "$0"', disk])),
  };
}

sandboxTest.skipIf(differs("limits.cpus"))(
  titled(
    "limits.cpus",
    "processors: only a command that ran out of time for want of them has the limit as its cause",
  ),
  async ({ open }) => {
    const spin = "while :; do :; done";
    const cause = {
      kind: "cpu-limit",
      cpus: 0.02,
      share: expect.toSatisfy((share) => share >= 0.25 && share <= 1),
    };
    const spinning = async (sandbox: Sandbox) => {
      expect(await run(sandbox, spin, { timeoutMs: 3000 })).toMatchObject({
        timedOut: true,
        causes: [cause],
      });
      const failed = await run(sandbox, "for i in $(seq 10000); do :; done; exit 3", { timeoutMs: 60_000 });
      expect(failed).toMatchObject({ exitCode: 3, timedOut: false, causes: [] });
      const bystander = await startReady(sandbox, "echo ready; read line; exit 5");
      expect(await run(sandbox, spin, { timeoutMs: 3000 })).toMatchObject({ timedOut: true, causes: [] });
      bystander.stdin?.end("\n");
      expect(await bystander.exit).toMatchObject({ exitCode: 5, causes: [] });
    };
    const waiting = async (sandbox: Sandbox) => {
      // Long enough that its start, for which a busy machine takes a second or more, is a small part of it.
      expect(await run(sandbox, "exec sleep 60", { timeoutMs: 10_000 })).toMatchObject({
        timedOut: true,
        causes: [],
      });
    };
    // Both users' sandboxes at once, since all of them wait most of the time.
    const checks: Promise<void>[] = [];
    await using policies = await temporaryDirectory();
    const policyFile = await changedPolicy(policies.path, { cpus: 0.02 });
    for (const user of OWNING_USERS) {
      becomeHostUser(user);
      checks.push(waiting(await open({ policyFile })), spinning(await open({ policyFile })));
    }
    await Promise.all(checks);
  },
);

const withSmallLimits = async (directory: string) => ({ policyFile: await changedPolicy(directory, small) });

forEachHostUser((test, { uid }) => {
  test.skipIf(differs("limits.memory"))(
    titled("limits.memory", "memory: the command whose process was killed has the limit as its cause"),
    async ({ openShared }) => {
      const sandbox = await openShared(withSmallLimits);
      expect(await sandbox.exec(hog)).toMatchObject({
        exitCode: 137,
        outOfMemory: true,
        causes: [memoryLimit],
      });
      const outlived = await sandbox.exec(["sh", "-c", `"$@"; exit 3`, "sh", ...hog]);
      expect(outlived).toMatchObject({ exitCode: 3, outOfMemory: true, causes: [memoryLimit] });
      const succeeded = await sandbox.exec(["sh", "-c", `"$@"; exit 0`, "sh", ...hog]);
      expect(succeeded).toMatchObject({ exitCode: 0, outOfMemory: false, causes: [] });
      // A kill that brought down no command is not put down to the next one that fails.
      expect(await run(sandbox, "exit 4")).toMatchObject({ exitCode: 4, outOfMemory: false, causes: [] });
      expect(await run(sandbox, "kill -9 $$")).toMatchObject({
        signal: "SIGKILL",
        outOfMemory: false,
        causes: [],
      });
    },
  );

  test.skipIf(differs("limits.memory"))(
    titled("limits.memory", "memory: beside another command each is told what happened to itself"),
    async ({ openShared }) => {
      const sandbox = await openShared(withSmallLimits);
      const bystander = await startReady(sandbox, "echo ready; read line; exit 5");
      expect(await sandbox.exec(hog)).toMatchObject({ exitCode: 137, causes: [memoryLimit] });
      const inShell = await sandbox.exec(["sh", "-c", `"$@"; exit $?`, "sh", ...hog]);
      expect(inShell).toMatchObject({ exitCode: 137, causes: [memoryLimit] });
      bystander.stdin?.end("\n");
      expect(await bystander.exit).toMatchObject({ exitCode: 5, outOfMemory: false, causes: [] });
    },
  );

  test.skipIf(differs("limits.pids"))(
    titled("limits.pids", "processes: a command that was refused one has the limit as its cause"),
    async ({ openShared }) => {
      const sandbox = await openShared(withSmallLimits);
      expect(await run(sandbox, fork(9))).toMatchObject({ exitCode: 9, causes: [processLimit] });
      expect(await run(sandbox, fork(0))).toMatchObject({
        exitCode: 0,
        causes: [],
      });
      expect(await run(sandbox, "exit 4")).toMatchObject({ exitCode: 4, causes: [] });
    },
  );

  // The kernel counts no processes of root's against such a limit.
  const limitedTest = uid === 0 ? null : test.skipIf(differs("limits.pids"));
  limitedTest?.(
    titled("limits.pids", "processes: a limit that the command has set itself is not the sandbox's"),
    async ({ openShared }) => {
      const sandbox = await openShared(withSmallLimits);
      const result = await run(sandbox, `ulimit -u 8; ${fork(9)}`);
      expect(result.stderr).toContain("Resource temporarily unavailable");
      expect(result).toMatchObject({ causes: [] });
    },
  );

  test.skipIf(differs("limits.pids"))(
    titled(
      "limits.pids",
      "processes: neither a command beside another, nor one beside what is left, has its cause",
    ),
    // What is left goes on until the sandbox ends.
    async ({ open, directory }) => {
      const sandbox = await open({ policyFile: await changedPolicy(directory, small) });
      const bystander = await startReady(sandbox, "echo ready; read line; exit 5");
      expect(await run(sandbox, fork(9))).toMatchObject({ exitCode: 9, causes: [] });
      bystander.stdin?.end("\n");
      expect(await bystander.exit).toMatchObject({ exitCode: 5, causes: [] });
      const leaving = "(while :; do sleep 30 & done) > /dev/null 2>&1 &";
      expect(await run(sandbox, leaving)).toMatchObject({ exitCode: 0 });
      await sleep(300);
      expect(await sandbox.exec(["false"])).toMatchObject({ exitCode: 1, causes: [] });
    },
  );

  test("a full directory: by bytes, by files, and which one", async ({ openShared }) => {
    const sandbox = await openShared(withSmallLimits);
    expect(await run(sandbox, fill("/tmp/x"))).toMatchObject({ exitCode: 1, causes: [fullTmp] });
    await run(sandbox, "rm /tmp/x");
    expect(await run(sandbox, fill("/dev/shm/x"))).toMatchObject({
      causes: [{ ...fullTmp, path: "/dev/shm", limit: 8 * 1024 ** 2 }],
    });
    await run(sandbox, "rm /dev/shm/x");
    const files = "for i in $(seq 600); do : > ~/$i || exit 6; done 2>/dev/null";
    expect(await run(sandbox, files)).toMatchObject({
      exitCode: 6,
      causes: [{ ...fullTmp, path: "/home/brig", lacks: "files", limit: 500 }],
    });
    await run(sandbox, "rm ~/*");
  });

  test.skipIf(!hasDisks)(
    "a full disk: by bytes and by files [needs root, and loop devices]",
    async ({ open, directory }) => {
      await using disk = await smallDisk(directory);
      const sandbox = await open({ workspace: disk.path });
      const full = { kind: "disk-full", path: disk.path, limit: expect.any(Number), wasFull: false };
      expect(await run(sandbox, fill("x"))).toMatchObject({
        exitCode: 1,
        causes: [{ ...full, lacks: "bytes" }],
      });
      await run(sandbox, "rm x");
      const files = "for i in $(seq 5000); do : > $i || exit 6; done 2>/dev/null";
      expect(await run(sandbox, files)).toMatchObject({ exitCode: 6, causes: [{ ...full, lacks: "files" }] });
      await sandbox.close();
    },
  );

  test("a full directory is no cause of what has nothing to do with it", async ({ openShared }) => {
    const sandbox = await openShared(withSmallLimits);
    const says = "echo 'write error: No space left on device' >&2; exit 1";
    expect(await run(sandbox, says)).toMatchObject({ exitCode: 1, causes: [] });
    const succeeds = `${fill("/tmp/x")}; exit 0`;
    expect(await run(sandbox, succeeds)).toMatchObject({ exitCode: 0, causes: [] });
    expect(await sandbox.exec(["false"])).toMatchObject({ exitCode: 1, causes: [] });
    expect(await run(sandbox, says)).toMatchObject({ exitCode: 1, causes: [] });
    // It was full before, and this one needed it.
    expect(await run(sandbox, "echo more > /tmp/y")).toMatchObject({
      exitCode: 1,
      causes: [{ ...fullTmp, wasFull: true }],
    });
    // It was full only in between.
    expect(await run(sandbox, "rm /tmp/x; exit 2")).toMatchObject({ exitCode: 2, causes: [] });
  });

  test("a full directory: a command beside the one that fills it does not have its cause", async ({
    openShared,
  }) => {
    const sandbox = await openShared(withSmallLimits);
    const bystander = await startReady(sandbox, "echo ready; read line; exit 5");
    expect(await run(sandbox, fill("/tmp/x"))).toMatchObject({ exitCode: 1 });
    bystander.stdin?.end("\n");
    expect(await bystander.exit).toMatchObject({ exitCode: 5, causes: [] });
    await run(sandbox, "rm /tmp/x");
  });

  test("a refused connection: with the host, and only for the command that made it", async ({ open }) => {
    const sandbox = await open({ network: "allowlist:allowed.example" });
    const refused =
      "python3 -c \"import urllib.request as r; r.urlopen('http://denied.example/x')\" 2>/dev/null";
    const cause = { kind: "network-rule", host: "denied.example", port: 80, denial: "no-rule" };
    const [denied, other] = await Promise.all([run(sandbox, refused), run(sandbox, "sleep 0.5; exit 3")]);
    expect(denied).toMatchObject({ exitCode: 1, causes: [cause] });
    expect(other).toMatchObject({ exitCode: 3, causes: [] });
    expect(await run(sandbox, `${refused}; exit 0`)).toMatchObject({ exitCode: 0, causes: [] });
  });
});
