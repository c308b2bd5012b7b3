import { chmod, lstat, mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect } from "vitest";
import type { Sandbox } from "../../src/sandbox/sandbox.js";
import { CallScheduler } from "../../src/tools/call-scheduler.js";
import { applyPatchForPrograms, applyPatchTool } from "../../src/tools/patch/apply-patch-tool.js";
import { createPatcher } from "../../src/tools/patch/patcher.js";
import { createToolRegistry } from "../../src/tools/registry.js";
import { treeDigest } from "../support/host-tree.js";
import { sandboxTest } from "../support/sandbox.js";
import { mutatedPatch, patchOf } from "../unit/tools/patch/patches.js";

const success = (...lines: string[]) => ["Success. Updated the following files:", ...lines, ""].join("\n");
const change = (from: string, to: string) => ["@@", `-${from}`, `+${to}`];

async function apply(sandbox: Sandbox, cwd: string, ...lines: string[]): Promise<string> {
  const tool = applyPatchTool(
    createPatcher(() => sandbox.files),
    { cwd },
  );
  const { content } = await tool.execute({ input: patchOf(...lines) });
  return content
    .replace(/^Exit code: 0\nWall time: [\d.]+ seconds\nOutput:\n/, "")
    .replaceAll(cwd, "WORKSPACE");
}

describe("apply_patch in a sandbox", () => {
  sandboxTest("adds, updates, moves and deletes the workspace's files", async ({ sandbox, workspace }) => {
    const root = join(workspace, "all");
    await mkdir(root);
    await writeFile(join(root, "u"), "a\r\nb\r\n");
    await writeFile(join(root, "m"), "a");
    await writeFile(join(root, "d"), "");
    await chmod(join(root, "m"), 0o755);
    await symlink("u", join(root, "l"));
    expect(
      await apply(
        sandbox,
        root,
        ...[
          "*** Update File: l",
          ...change("a", "A"),
          "*** Delete File: d",
          "*** Add File: new/a\n\tb",
          "+x",
        ],
        ...[
          "*** Add File: ünï/\u001b[31m",
          "+x",
          "*** Update File: m",
          "*** Move to: x/y/m",
          ...change("a", "A"),
        ],
      ),
    ).toMatch(/^apply_patch verification failed: invalid hunk at line 8/);
    expect(
      await apply(
        sandbox,
        root,
        ...["*** Update File: l", ...change("a", "A"), "*** Delete File: d", "*** Add File: new/a"],
        ...[
          "+x",
          "*** Add File: ünï/\u001b[31m",
          "+x",
          "*** Update File: m",
          "*** Move to: x/y/m",
          ...change("a", "A"),
        ],
      ),
    ).toBe(success("A new/a", "A ünï/\u001b[31m", "M l", "M x/y/m", "D d"));
    expect(await readFile(join(root, "u"), "utf8")).toBe("A\r\nb\r\n");
    expect(await readFile(join(root, "x/y/m"), "utf8")).toBe("A\n");
    expect(await readFile(join(root, "new/a"), "utf8")).toBe("x\n");
    expect(await readFile(join(root, "ünï/\u001b[31m"), "utf8")).toBe("x\n");
    expect((await lstat(join(root, "x/y/m"))).mode & 0o777).toBe(0o755);
    expect((await lstat(join(root, "l"))).isSymbolicLink()).toBe(true);
    await expect(lstat(join(root, "m"))).rejects.toMatchObject({ code: "ENOENT" });
    await expect(lstat(join(root, "d"))).rejects.toMatchObject({ code: "ENOENT" });
  });

  sandboxTest("is held by the kernel to a read-only workspace", async ({ open, directory }) => {
    await writeFile(join(directory, "f"), "a\n");
    await mkdir(join(directory, "dir"));
    const before = await treeDigest(directory);
    const sandbox = await open({ workspace: directory, mode: "read-only" });
    const failed = (text: string) =>
      expect.stringMatching(
        new RegExp(
          `^Exit code: 1\\nWall time: [\\d.]+ seconds\\nOutput:\\n${text}: Read-only file system \\(os error 30\\)\\n$`,
        ),
      );
    expect(await apply(sandbox, directory, "*** Update File: f", ...change("a", "b"))).toEqual(
      failed("Failed to write file WORKSPACE/f"),
    );
    expect(await apply(sandbox, directory, "*** Add File: new", "+x")).toEqual(
      failed("Failed to write file WORKSPACE/new"),
    );
    expect(await apply(sandbox, directory, "*** Add File: no/new", "+x")).toEqual(
      failed("Failed to create parent directories for WORKSPACE/no/new"),
    );
    expect(await apply(sandbox, directory, "*** Delete File: f")).toEqual(
      failed("Failed to delete file WORKSPACE/f"),
    );
    expect(
      await apply(sandbox, directory, "*** Update File: f", "*** Move to: /tmp/f", ...change("a", "b")),
    ).toEqual(failed("Failed to remove original WORKSPACE/f"));
    expect(await apply(sandbox, "/tmp", "*** Update File: f", ...change("b", "c"))).toBe(success("M f"));
    expect(await treeDigest(directory)).toBe(before);
  });

  sandboxTest("keeps out of protected places, and keeps what it did before", async ({ open, directory }) => {
    await mkdir(join(directory, ".git"));
    await writeFile(join(directory, ".git/config"), "a\n");
    const sandbox = await open({ workspace: directory });
    const lines = [
      "*** Add File: before",
      "+x",
      "*** Update File: .git/config",
      ...change("a", "b"),
      "*** Add File: after",
      "+x",
    ];
    expect(await apply(sandbox, directory, ...lines)).toMatch(
      /Failed to write file WORKSPACE\/\.git\/config: Read-only file system \(os error 30\)\n$/,
    );
    expect(await readFile(join(directory, ".git/config"), "utf8")).toBe("a\n");
    expect(await readFile(join(directory, "before"), "utf8")).toBe("x\n");
    await expect(lstat(join(directory, "after"))).rejects.toMatchObject({ code: "ENOENT" });
  });

  sandboxTest("leaves a file alone that its user has made read-only", async ({ open, directory }) => {
    const sandbox = await open({ workspace: directory });
    await sandbox.exec(["sh", "-c", "echo a >f; chmod 444 f"]);
    expect(await apply(sandbox, directory, "*** Update File: f", ...change("a", "b"))).toMatch(
      /Failed to write file WORKSPACE\/f: Permission denied \(os error 13\)\n$/,
    );
    expect(await readFile(join(directory, "f"), "utf8")).toBe("a\n");
  });

  sandboxTest("writes anywhere in the container with full access", async ({ open }) => {
    const sandbox = await open({ mode: "danger-full-access" });
    expect(await apply(sandbox, "/", "*** Add File: etc/brig/new", "+x")).toMatch(/^Success/);
    expect((await sandbox.files.read("/etc/brig/new")).toString()).toBe("x\n");
  });

  sandboxTest("applies unified diffs for programs", async ({ sandbox, workspace }) => {
    await writeFile(join(workspace, "diffed"), "a\nb");
    const patch = "--- a/diffed\n+++ b/diffed\n@@ -1,2 +1,2 @@\n-a\n+x\n b\n\\ No newline at end of file\n";
    const result = await applyPatchForPrograms({
      patcher: createPatcher(() => sandbox.files),
      cwd: workspace,
    }).execute({ patch });
    expect(result).toMatchObject({ success: true, stdout: success("M diffed"), stderr: "" });
    expect(await readFile(join(workspace, "diffed"), "utf8")).toBe("x\nb");
  });

  sandboxTest("loses no change when many patches come at once", async ({ sandbox, workspace }) => {
    const numbers = Array.from({ length: 20 }, (_, index) => index);
    await writeFile(join(workspace, "shared"), numbers.map((number) => `line ${number}\n`).join(""));
    const tool = applyPatchTool(
      createPatcher(() => sandbox.files),
      { cwd: workspace },
    );
    const outputs = await Promise.all(
      numbers.map((number) =>
        tool.execute({
          input: patchOf(
            "*** Update File: shared",
            ...change(`line ${number}`, `LINE ${number}`),
            `*** Add File: own-${number}`,
            "+x",
          ),
        }),
      ),
    );
    expect(outputs.filter(({ success }) => !success)).toEqual([]);
    expect(await readFile(join(workspace, "shared"), "utf8")).toBe(
      numbers.map((number) => `LINE ${number}\n`).join(""),
    );
  });

  sandboxTest(
    "loses no change when the calls of a turn name a file in several ways",
    async ({ open, directory }) => {
      const numbers = Array.from({ length: 12 }, (_, index) => index);
      await mkdir(join(directory, "deep"));
      await writeFile(join(directory, "deep/file"), numbers.map((number) => `line ${number}\n`).join(""));
      await symlink("deep", join(directory, "link"));
      await symlink(join(directory, "link/file"), join(directory, "far"));
      const names = ["deep/file", "link/file", "far", "link/../deep//./file", `${directory}/link/file`];
      const sandbox = await open({ workspace: directory });
      const tools = createToolRegistry(sandbox, { cwd: directory });
      const scheduler = new CallScheduler(tools, { signal: new AbortController().signal });
      const outcomes = await Promise.all(
        numbers.map((number) => {
          const input = patchOf(
            `*** Update File: ${names[number % names.length]}`,
            ...change(`line ${number}`, `LINE ${number}`),
          );
          return scheduler.run({ callId: `${number}`, name: "apply_patch", kind: "custom", input });
        }),
      );
      expect(outcomes.filter(({ success }) => !success)).toEqual([]);
      expect(await readFile(join(directory, "deep/file"), "utf8")).toBe(
        numbers.map((number) => `LINE ${number}\n`).join(""),
      );
      await tools.close();
    },
  );

  sandboxTest("never writes outside of its places, whatever the patch", async ({ open, directory }) => {
    const [outside, workspace] = [join(directory, "outside"), join(directory, "workspace")];
    await mkdir(join(outside, "sub"), { recursive: true });
    await mkdir(workspace);
    await writeFile(join(outside, "f"), "a\n");
    await symlink("../outside", join(workspace, "link"));
    await symlink("/etc/passwd", join(workspace, "passwd"));
    await writeFile(join(workspace, "a.txt"), "a\n");
    const before = await treeDigest(outside);
    const sandbox = await open({ workspace });
    const tool = applyPatchTool(
      createPatcher(() => sandbox.files),
      { cwd: workspace },
    );
    const passwd = await readFile("/etc/passwd", "utf8");
    const place = fc.constantFrom(
      "../outside/f",
      `${outside}/f`,
      "link/f",
      "link/sub/new",
      "../outside/../outside/new",
      "passwd",
      "/etc/passwd",
      "/proc/1/mem",
      "a.txt/../../outside/f",
      `${"../".repeat(40)}etc/passwd`,
      "../new",
      ".",
      "/",
    );
    const hostile = fc
      .tuple(place, place, fc.nat(3))
      .map(([from, to, kind]) =>
        patchOf(
          ...[
            [`*** Add File: ${from}`, "+owned"],
            [`*** Delete File: ${from}`],
            [`*** Update File: ${from}`, ...change("a", "owned")],
            [
              "*** Add File: mine",
              "+owned",
              "*** Update File: mine",
              `*** Move to: ${to}`,
              ...change("owned", "moved"),
            ],
          ][kind]!,
        ),
      );
    await fc.assert(
      fc.asyncProperty(fc.oneof(hostile, mutatedPatch), async (input) => {
        await tool.execute({ input });
      }),
      { numRuns: 300 },
    );
    expect(await treeDigest(outside)).toBe(before);
    expect(await readFile("/etc/passwd", "utf8")).toBe(passwd);
    await expect(lstat(join(directory, "new"))).rejects.toMatchObject({ code: "ENOENT" });
    await expect(lstat("/etc/outside")).rejects.toMatchObject({ code: "ENOENT" });
  });
});
