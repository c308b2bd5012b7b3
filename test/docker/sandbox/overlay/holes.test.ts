import { readdirSync, statSync } from "node:fs";
import { open as openFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, vi } from "vitest";
import type { Sandbox } from "../../../../src/sandbox/sandbox.js";
import { newSandboxTest, temporaryDirectory } from "../../../support/sandbox.js";

const it = newSandboxTest();

const TERABYTE = 2 ** 40;

/** The size, what it occupies in KiB, and the end of the file. */
const look = "stat -c '%s' f; du -k f | cut -f1; tail -c 2 f; dd if=f bs=1 skip=1000000 count=4 2>/dev/null";

async function seen(sandbox: Sandbox) {
  const { stdout } = await sandbox.exec(["sh", "-ec", look]);
  const [size, kilobytes, ends] = stdout.split("\n");
  expect(Number(kilobytes)).toBeLessThan(200);
  return { size: Number(size), ends };
}

function occupied(directory: string): number {
  return readdirSync(directory, { recursive: true, encoding: "utf8" })
    .map((name) => statSync(join(directory, name)).blocks * 512)
    .reduce((sum, bytes) => sum + bytes, 0);
}

it("holes stay holes in restore points, snapshots, forks and on the host, and do not count", async ({
  open,
}) => {
  await using directory = await temporaryDirectory();
  await using home = await temporaryDirectory();
  vi.stubEnv("BRIG_HOME", home.path);
  const sandbox = await open({ workspace: directory.path, workspaceKind: "overlay" });
  const change = async (script: string) => await sandbox.exec(["sh", "-ec", script]);
  await change(`truncate -s ${TERABYTE} f; printf mid | dd of=f bs=1 seek=1000000 conv=notrunc 2>/dev/null`);
  const point = await sandbox.restorePoint();
  for (const letter of ["x", "y"]) {
    await change(`printf ${letter} >> f`);
    expect(await sandbox.restorePoint()).not.toBeNull();
  }
  const last = { size: TERABYTE + 2, ends: "xymid\0" };
  expect(await seen(sandbox)).toEqual(last);
  expect(occupied(home.path)).toBeLessThan(2 ** 20);

  const snapshot = await sandbox.snapshot();
  expect(await seen(await open({ workspace: directory.path, from: snapshot }))).toEqual(last);
  await using fork = await sandbox.fork();
  expect(await seen(fork)).toEqual(last);
  await sandbox.restore(point?.number ?? 0);
  expect(await seen(sandbox)).toEqual({ size: TERABYTE, ends: "\0\0mid\0" });
  expect(await sandbox.diff()).toMatchObject({ count: 1, tooLarge: 1 });

  expect(await sandbox.apply()).toMatchObject({ applied: ["f"] });
  const onHost = statSync(join(directory.path, "f"));
  expect([onHost.size, onHost.blocks * 512 < 200_000]).toEqual([TERABYTE, true]);
  await using file = await openFile(join(directory.path, "f"));
  expect((await file.read(Buffer.alloc(3), 0, 3, 1_000_000)).buffer.toString()).toBe("mid");
});
