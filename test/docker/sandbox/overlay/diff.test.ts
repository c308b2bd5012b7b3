import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { execa } from "execa";
import { describe, expect } from "vitest";
import type { WorkspaceChange } from "../../../../src/sandbox/changes/workspace-change.js";
import { newSandboxTest, temporaryDirectory } from "../../../support/sandbox.js";

const it = newSandboxTest();

const brief = ({ path, change, before, after }: WorkspaceChange) =>
  `${change} ${path} ${before?.type ?? "-"} ${after?.type ?? "-"}`;

const script = `set -e
echo changed > file; echo new > "a new file"; rm removed; mv folder renamed; chmod +x program
ln -s file link; ln -sf /elsewhere oldlink; rm -r whole; mkdir whole; echo only > whole/one
mkfifo pipe; printf 'a\\0b' > binary; rm becomes; mkdir becomes; echo x > becomes/x; touch touched
mkdir closed; echo secret > closed/file; chmod 0 closed/file closed`;

async function makeWorkspace(workspace: string) {
  for (const [name, text] of Object.entries({
    file: "the host's\n",
    removed: "gone soon\n",
    program: "#!/bin/sh\n",
    becomes: "a file\n",
    binary: "text\n",
    touched: "same\n",
  }))
    writeFileSync(join(workspace, name), text);
  mkdirSync(join(workspace, "folder"));
  writeFileSync(join(workspace, "folder/below"), "below\n");
  mkdirSync(join(workspace, "whole"));
  writeFileSync(join(workspace, "whole/two"), "two\n");
  symlinkSync("file", join(workspace, "oldlink"));
}

describe("what a sandbox changed in a copy-on-write workspace", () => {
  it("is every path that differs, in order", async ({ open }) => {
    await using directory = await temporaryDirectory();
    await makeWorkspace(directory.path);
    const sandbox = await open({ workspace: directory.path, workspaceKind: "overlay" });
    expect(await sandbox.diff()).toEqual({ changes: [], count: 0, tooLarge: 0, notEntered: 0 });
    expect((await sandbox.exec(["sh", "-c", script])).output).toBe("");
    const { changes, ...rest } = await sandbox.diff();
    expect(rest).toEqual({ count: changes.length, tooLarge: 0, notEntered: 0 });
    expect(changes.map(brief)).toEqual([
      "added a new file - file",
      "modified becomes file directory",
      "added becomes/x - file",
      "modified binary file file",
      "added closed - directory",
      "added closed/file - file",
      "modified file file file",
      "deleted folder directory -",
      "added link - symlink",
      "modified oldlink symlink symlink",
      "added pipe - fifo",
      "modified program file file",
      "deleted removed file -",
      "added renamed - directory",
      "added renamed/below - file",
      "added whole/one - file",
      "deleted whole/two file -",
    ]);
    const closed = changes.find(({ path }) => path === "closed/file");
    expect(closed).toMatchObject({ after: { type: "file", mode: 0, sizeBytes: 7 } });
    expect(changes.filter(({ isBinary }) => isBinary).map(({ path }) => path)).toEqual(["binary"]);
  });

  it("is a patch that makes the same of the host's files", async ({ open }) => {
    await using directory = await temporaryDirectory();
    await makeWorkspace(directory.path);
    await using copy = await temporaryDirectory();
    await cp(directory.path, copy.path, { recursive: true, verbatimSymlinks: true });
    const sandbox = await open({ workspace: directory.path, workspaceKind: "overlay" });
    await sandbox.exec(["sh", "-c", script]);
    const { changes } = await sandbox.diff();
    const patch = changes.map((change) => change.patch ?? "");
    await execa("git", ["apply", "-"], { cwd: copy.path, input: patch.join("") });
    expect(readFileSync(join(copy.path, "file"), "utf8")).toBe("changed\n");
    expect(["removed", "folder"].filter((name) => existsSync(join(copy.path, name)))).toEqual([]);
    expect(readFileSync(join(copy.path, "renamed/below"), "utf8")).toBe("below\n");
    expect(readFileSync(join(copy.path, "binary"), "utf8")).toBe("a\0b");
    expect(readFileSync(join(copy.path, "whole/one"), "utf8")).toBe("only\n");
    expect(readFileSync(join(copy.path, "becomes/x"), "utf8")).toBe("x\n");
  });

  it("can be asked for by path, without patches, and change by change", async ({ open }) => {
    await using directory = await temporaryDirectory();
    await makeWorkspace(directory.path);
    const sandbox = await open({ workspace: directory.path, workspaceKind: "overlay" });
    await sandbox.exec(["sh", "-c", script]);
    const paths = ["renamed", join(directory.path, "whole/one"), "fil"];
    const some = await sandbox.diff({ paths, patches: false });
    expect(some.changes.map(({ path, patch }) => [path, patch])).toEqual([
      ["renamed", null],
      ["renamed/below", null],
      ["whole/one", null],
    ]);
    const seen: string[] = [];
    const streamed = await sandbox.diff({ onChange: async ({ path }) => void seen.push(path) });
    expect(streamed).toMatchObject({ changes: [], count: seen.length });
    expect(seen).toHaveLength(17);
    await expect(sandbox.diff({ paths: ["../other"] })).rejects.toMatchObject({ code: "usage.invalid" });
  });

  it("has no patch of what is too large, and says so", async ({ open }) => {
    await using directory = await temporaryDirectory();
    const sandbox = await open({ workspace: directory.path, workspaceKind: "overlay" });
    await sandbox.exec(["sh", "-c", "echo 12345678 > a; echo 1 > b; echo 2 > c; truncate -s 1T giant"]);
    const byFile = await sandbox.diff({ maxFileBytes: 5 });
    expect(byFile.changes.map(({ path, patch }) => [path, patch !== null])).toEqual([
      ["a", false],
      ["b", true],
      ["c", true],
      ["giant", false],
    ]);
    expect(byFile.tooLarge).toBe(2);
    const bytes = byFile.changes.find(({ path }) => path === "b")?.patch?.length ?? 0;
    const together = await sandbox.diff({ paths: ["b", "c"], maxPatchBytes: bytes });
    expect(together.changes.map(({ patch }) => patch !== null)).toEqual([true, false]);
    expect(together.tooLarge).toBe(1);
  });

  it("may be made while files vanish", async ({ open }) => {
    await using directory = await temporaryDirectory();
    const sandbox = await open({ workspace: directory.path, workspaceKind: "overlay" });
    const script =
      "while :; do for j in 1 2 3 4 5 6 7 8 9; do head -c 200000 /dev/zero > f$j; done; rm -f f*; done";
    const running = await sandbox.spawn(["sh", "-c", script], { stdin: "closed" });
    for (let made = 0; made < 30; made++) {
      expect((await sandbox.diff()).count).toBeLessThan(10);
      await sandbox.restorePoint();
    }
    await running.kill();
  });

  it("goes through names that are not UTF-8", async ({ open }) => {
    await using directory = await temporaryDirectory();
    const sandbox = await open({ workspace: directory.path, workspaceKind: "overlay" });
    await sandbox.exec(["sh", "-c", "echo x > \"$(printf 'a\\377b')\""]);
    const { changes } = await sandbox.diff();
    expect(changes).toMatchObject([{ path: "a\ufffdb", change: "added" }]);
    expect(Buffer.from(changes[0]?.pathBytes ?? [])).toEqual(Buffer.from([0x61, 0xff, 0x62]));
  });

  it("ends when the caller gives up, and fails with what the caller throws", async ({ open }) => {
    await using directory = await temporaryDirectory();
    const sandbox = await open({ workspace: directory.path, workspaceKind: "overlay" });
    await sandbox.exec(["sh", "-c", "for i in $(seq 500); do echo $i > f$i; done"]);
    const reason = new Error("enough");
    await expect(sandbox.diff({ onChange: () => Promise.reject(reason) })).rejects.toBe(reason);
    await expect(sandbox.diff({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect((await sandbox.diff()).count).toBe(500);
  });
});

it("a workspace of the host's own files has no diff", async ({ open }) => {
  await using directory = await temporaryDirectory();
  const sandbox = await open({ workspace: directory.path });
  await expect(sandbox.diff()).rejects.toMatchObject({
    code: "workspace.invalid",
    hint: expect.stringContaining("--workspace overlay"),
  });
  rmSync(join(directory.path, "x"), { force: true });
});
