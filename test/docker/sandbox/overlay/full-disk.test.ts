import { execFile } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect } from "vitest";
import { readEnvironment } from "../../../../src/lib/env.js";
import { sandboxTest as it, type TemporaryDirectory, temporaryDirectory } from "../../../support/sandbox.js";

const run = promisify(execFile);
const canMount = process.getuid?.() === 0 && process.platform === "linux";

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

const makeLarge = ["sh", "-c", "echo agent > file; head -c 4000000 /dev/zero | tr '\\0' x > large"];

describe.runIf(canMount)("a disk that becomes full [needs root, to mount a small disk]", () => {
  it("in the middle of an apply leaves the host's files as they were", async ({ open }) => {
    await using disk = await smallDisk();
    const file = join(disk.path, "file");
    writeFileSync(file, "host\n");
    const sandbox = await open({ workspace: disk.path, workspaceKind: "overlay" });
    await sandbox.exec(makeLarge);
    await expect(sandbox.apply()).rejects.toMatchObject({ code: "file.failed", errno: "ENOSPC" });
    expect(readdirSync(disk.path)).toEqual(["file"]);
    expect(readFileSync(file, "utf8")).toBe("host\n");
    expect(await sandbox.apply({ paths: ["file"] })).toMatchObject({ applied: ["file"], conflicts: [] });
    expect(readFileSync(file, "utf8")).toBe("agent\n");
    await sandbox.close();
  });

  it("in the middle of a snapshot or of a fork leaves nothing of it, and the sandbox goes on", async ({
    open,
    directory,
  }) => {
    await using disk = await smallDisk();
    const [workspace, brigHome] = [join(directory, "workspace"), join(disk.path, "home")];
    mkdirSync(workspace);
    const environment = { ...readEnvironment(), brigHome };
    const sandbox = await open({ workspace, workspaceKind: "overlay", environment });
    await sandbox.exec(makeLarge);
    await expect(sandbox.snapshot()).rejects.toMatchObject({ code: "snapshot.failed", errno: "ENOSPC" });
    expect(readdirSync(join(brigHome, "snapshots"))).toEqual([]);
    expect((await sandbox.exec(["cat", "file"])).stdout).toBe("agent\n");
  });
});
