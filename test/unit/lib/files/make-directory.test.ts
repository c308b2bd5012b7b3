import { existsSync } from "node:fs";
import { chmod, mkdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { execa } from "execa";
import { expect, it } from "vitest";
import { systemReason } from "../../../../src/lib/errno.js";
import { makeDirectory, makeDirectorySync } from "../../../../src/lib/files/make-directory.js";
import { temporaryDirectory } from "../../../support/sandbox.js";

const ways = [
  ["while others work", makeDirectory],
  ["at once", async (path: string, options?: { mode?: number }) => makeDirectorySync(path, options)],
] as const;

it.each(ways)("makes what is missing above it too, %s", async (_, make) => {
  await using folder = await temporaryDirectory();
  const path = join(folder.path, "a", "b");
  await make(path, { mode: 0o700 });
  await make(path);
  expect((await stat(path)).mode & 0o777).toBe(0o700);
});

it.each(ways)("leaves every other error as it is, %s", async (_, make) => {
  await using folder = await temporaryDirectory();
  await writeFile(join(folder.path, "file"), "");
  await expect(make(join(folder.path, "file", "a", "b"))).rejects.toMatchObject({ code: "ENOTDIR" });
});

it.skipIf(process.getuid?.() !== 0).each(ways)(
  "says that a disk is read-only, %s [needs root]",
  async (_, make) => {
    await using folder = await temporaryDirectory();
    const disk = join(folder.path, "disk");
    await mkdir(disk);
    await execa("mount", ["-t", "tmpfs", "-o", "ro", "none", disk]);
    try {
      for (const path of [join(disk, "a"), join(disk, "a", "b", "c")]) {
        const error: unknown = await make(path).catch((thrown: unknown) => thrown);
        expect(systemReason(error)).toBe("the file system is read-only");
      }
    } finally {
      await execa("umount", [disk]);
    }
  },
);

it.skipIf(process.getuid?.() === 0).each(ways)(
  "says that a directory may not be written, %s [needs another user than root]",
  async (_, make) => {
    await using folder = await temporaryDirectory();
    await chmod(folder.path, 0o500);
    await expect(make(join(folder.path, "a", "b"))).rejects.toMatchObject({ code: "EACCES" });
    expect(existsSync(join(folder.path, "a"))).toBe(false);
  },
);
