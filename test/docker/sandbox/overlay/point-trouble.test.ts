import { execFile } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, vi } from "vitest";
import { readEnvironment } from "../../../../src/lib/env.js";
import { openSnapshot } from "../../../../src/sandbox/snapshots/snapshot-store.js";
import { testEngine } from "../../../support/engine.js";
import { sandboxTest as it, type TemporaryDirectory, temporaryDirectory } from "../../../support/sandbox.js";

const run = promisify(execFile);
const canMount = process.getuid?.() === 0 && process.platform === "linux";

it("restores nothing while a program writes to a file that would be restored", async ({ open }) => {
  await using directory = await temporaryDirectory();
  const sandbox = await open({ workspace: directory.path, workspaceKind: "overlay" });
  await sandbox.exec(["sh", "-c", "echo 1 > busy"]);
  const writing = await sandbox.spawn(["sh", "-c", "while :; do echo $((n += 1)) >> busy; done"]);
  // On a busy machine the program may not run between the look at the files and their change: then all is undone.
  const refused = await vi.waitUntil(
    async () => {
      await sandbox.exec(["sh", "-c", "echo 1 > a; echo 1 > z"]);
      return sandbox.undo().then(
        () => null,
        (error: unknown) => ({ error }),
      );
    },
    { timeout: 10_000, interval: 1 },
  );
  expect(refused.error).toMatchObject({
    code: "workspace.conflict",
    message: expect.stringContaining('"busy"'),
  });
  expect((await sandbox.exec(["sh", "-c", "cat a z; ls; ls -d .brig-*"])).stdout).toBe("1\n1\na\nbusy\nz\n");
  await writing.kill();
  await writing.exit;
  expect(await sandbox.undo()).not.toBeNull();
});

it("keeps names of any bytes, and leaves out what is no file", async ({ open }) => {
  await using directory = await temporaryDirectory();
  const sandbox = await open({ workspace: directory.path, workspaceKind: "overlay" });
  const names = `echo a > "$(printf 'a\\377\\nb')"; mkfifo fifo; ln -s "$(printf '\\376')" link; echo s > .brig-stage-0000000000000000
    mkdir closed; echo c > closed/c; chmod 0 closed; echo e > empty; : > empty`;
  await sandbox.exec(["sh", "-ec", names]);
  const point = await sandbox.restorePoint();
  expect(point?.changes.map(({ path }) => path)).toContain("fifo");
  const list = "find . -mindepth 1 -name '.brig*' -o -type p -o -printf '%P %y %m %l\\n' | sort | od -c";
  const before = (await sandbox.exec(["sh", "-c", list])).stdout;
  await sandbox.exec(["sh", "-c", "chmod 700 closed; rm -rf ./*; echo other > empty"]);
  await sandbox.restorePoint();
  await sandbox.restore(1);
  expect((await sandbox.exec(["sh", "-c", list])).stdout).toBe(before);
});

it("takes one point for calls at the same time, also while the workspace is compared and forked", async ({
  open,
}) => {
  await using directory = await temporaryDirectory();
  const sandbox = await open({ workspace: directory.path, workspaceKind: "overlay" });
  await sandbox.exec(["sh", "-c", "for n in $(seq 50); do echo $n > f$n; done"]);
  const [points, diff, fork] = await Promise.all([
    Promise.all(Array.from({ length: 5 }, () => sandbox.restorePoint())),
    sandbox.diff(),
    sandbox.fork(),
  ]);
  expect(points.filter((point) => point !== null)).toMatchObject([{ number: 1, count: 50 }]);
  expect(diff.count).toBe(50);
  await fork.close();
  await sandbox.exec(["sh", "-c", "echo more > f1"]);
  const [applied, point] = await Promise.all([sandbox.apply({ paths: ["f2"] }), sandbox.restorePoint()]);
  expect(applied.applied).toEqual(["f2"]);
  expect([null, 2]).toContain(point?.number ?? null);
  const { id, points: all } = await stateOf(sandbox);
  expect(all.map(({ kind }) => kind)).toEqual(["call", "call", "applied"]);
  expect(id).toBe(sandbox.snapshotId);
});

it("no longer counts what was brought to the host, and goes back to what was there before that", async ({
  open,
}) => {
  await using directory = await temporaryDirectory();
  const file = join(directory.path, "file");
  writeFileSync(file, "host\n");
  const sandbox = await open({ workspace: directory.path, workspaceKind: "overlay" });
  await sandbox.exec(["sh", "-c", "echo agent > file; echo n > new"]);
  await sandbox.restorePoint();
  await sandbox.apply();
  expect(await sandbox.restorePoint()).toBeNull();
  expect((await stateOf(sandbox)).paths).toEqual([]);
  await sandbox.exec(["sh", "-c", "echo more > file"]);
  await sandbox.restorePoint();
  await sandbox.restore(0);
  expect((await sandbox.exec(["sh", "-c", "cat file; ls"])).stdout).toBe("host\nfile\n");
  expect(readFileSync(file, "utf8")).toBe("agent\n");
  await sandbox.restore(3);
  expect((await sandbox.exec(["sh", "-c", "cat file new"])).stdout).toBe("more\nn\n");
  expect((await sandbox.apply()).applied).toEqual(["file"]);
});

it("goes on with another keeper if its own is killed", async ({ open }) => {
  await using directory = await temporaryDirectory();
  const sandbox = await open({ workspace: directory.path, workspaceKind: "overlay" });
  await sandbox.exec(["sh", "-c", "echo 1 > file"]);
  await sandbox.restorePoint();
  const engine = await testEngine();
  const containers = await engine.listContainers([`brig.session=${sandbox.snapshotId}`]);
  for (const { id } of containers) await engine.removeContainer(id);
  await sandbox.exec(["sh", "-c", "echo 2 > file"]);
  expect(await sandbox.restorePoint()).toMatchObject({ number: 2, count: 1 });
  await sandbox.undo();
  expect((await sandbox.exec(["cat", "file"])).stdout).toBe("1\n");
});

/** A file system of one megabyte. */
async function smallDisk(): Promise<TemporaryDirectory> {
  const directory = await temporaryDirectory();
  await run("mount", ["-t", "tmpfs", "-o", "size=1m,mode=755", "none", directory.path]);
  return {
    path: directory.path,
    async [Symbol.asyncDispose]() {
      await run("umount", [directory.path]);
      await directory[Symbol.asyncDispose]();
    },
  };
}

const fullDisk = "a disk that becomes full in the middle of a point [needs root, to mount a small disk]";
describe.runIf(canMount)(fullDisk, () => {
  const makeLarge = "echo later > file; head -c 4000000 /dev/urandom > large";

  it("leaves the points before, and the next one has all that was changed", async ({ open, directory }) => {
    await using disk = await smallDisk();
    const [workspace, brigHome] = [join(directory, "workspace"), join(disk.path, "home")];
    mkdirSync(workspace);
    const environment = { ...readEnvironment(), brigHome };
    const sandbox = await open({ workspace, workspaceKind: "overlay", environment });
    const failed = { code: "snapshot.failed", errno: "ENOSPC" };
    await sandbox.exec(["sh", "-c", makeLarge]);
    await expect(sandbox.restorePoint()).rejects.toMatchObject(failed);
    expect(readdirSync(join(brigHome, "snapshots"))).toEqual([]);
    await sandbox.exec(["rm", "large"]);
    expect(await sandbox.restorePoint()).toMatchObject({ number: 1, count: 1 });
    await sandbox.exec(["sh", "-c", `${makeLarge}; echo second > file`]);
    await expect(sandbox.restorePoint()).rejects.toMatchObject(failed);
    expect((await openSnapshot(brigHome, sandbox.snapshotId ?? "")).points).toHaveLength(1);
    await sandbox.exec(["rm", "large"]);
    expect(await sandbox.restorePoint()).toMatchObject({ number: 2, changes: [{ path: "file" }] });
    const names = readdirSync(join(brigHome, "snapshots"), { recursive: true }).map(String);
    expect(names.filter((name) => /(?:^|\/)\./.test(name))).toEqual([]);
    await sandbox.close();
  });
});

/** The last state that a sandbox's points have on the host. */
async function stateOf({ snapshotId }: { snapshotId: string | null }) {
  const snapshot = await openSnapshot(readEnvironment().brigHome, snapshotId ?? "");
  const paths: string[] = [];
  for await (const { change } of snapshot.entries()) paths.push(change.path.toString());
  return { id: snapshot.head.id, points: snapshot.points, paths };
}
