import { mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { applyPatchForPrograms, applyPatchTool } from "../../../../src/tools/patch/apply-patch-tool.js";
import type { PatchFiles } from "../../../../src/tools/patch/patch-files.js";
import { parsePatch } from "../../../../src/tools/patch/patch-format.js";
import { createPatcher } from "../../../../src/tools/patch/patcher.js";
import type { Tool, ToolActivity, ToolOutput } from "../../../../src/tools/tool.js";
import { hostFiles } from "../../../support/host-files.js";
import { patchOf } from "./patches.js";

/** A directory with the file `f` of the lines a and b. */
const it = test
  // biome-ignore lint/correctness/noEmptyPattern: a fixture names what it needs, and this one needs nothing
  .extend("root", async ({}, { onCleanup }) => {
    const root = await realpath(await mkdtemp(join(tmpdir(), "brig-patch-")));
    onCleanup(() => rm(root, { recursive: true }));
    await writeFile(join(root, "f"), "a\nb\n");
    return root;
  })
  .extend("tool", ({ root }) =>
    applyPatchTool(
      createPatcher(() => hostFiles),
      { cwd: root },
    ),
  )
  .extend("jsonTool", ({ root }) =>
    applyPatchTool(
      createPatcher(() => hostFiles),
      { cwd: root, form: "function" },
    ),
  );

/** The output without the time it took, which is 0 unless the machine is busy. */
async function untimed(output: Promise<ToolOutput>): Promise<ToolOutput> {
  const { content, success } = await output;
  return { content: content.replace(/(Wall time: |"duration_seconds":)[\d.]+/, "$1T"), success };
}

const update = patchOf("*** Update File: f", "@@", "-a", "+x");

describe("apply_patch", () => {
  it("is declared as a custom tool with a grammar", ({ tool }) => {
    expect(tool).toMatchObject({
      name: "apply_patch",
      supportsParallel: true,
      isFreeform: true,
      spec: { type: "custom", name: "apply_patch", format: { type: "grammar", syntax: "lark" } },
    });
    expect(tool.spec).toMatchObject({ description: expect.stringContaining("do not wrap it in JSON") });
  });

  it("is declared as a function where the model wants one", ({ jsonTool }) => {
    expect(jsonTool.spec).toMatchObject({
      type: "function",
      name: "apply_patch",
      strict: false,
      parameters: {
        type: "object",
        properties: { input: { type: "string" } },
        required: ["input"],
        additionalProperties: false,
      },
    });
  });

  it("teaches a format that its parser takes", ({ jsonTool }) => {
    const [example = ""] = /\*\*\* Begin Patch[\s\S]*\*\*\* End Patch/.exec(jsonTool.description) ?? [];
    expect(parsePatch(example)).toMatchObject({ kind: "patch", hunks: [{}, {}, {}] });
  });

  it("answers with sections of text", async ({ tool, root }) => {
    expect(await untimed(tool.execute({ input: update }))).toEqual({
      content: "Exit code: 0\nWall time: T seconds\nOutput:\nSuccess. Updated the following files:\nM f\n",
      success: true,
    });
    expect(await readFile(join(root, "f"), "utf8")).toBe("x\nb\n");
  });

  it("answers with JSON as a function", async ({ jsonTool }) => {
    expect(await untimed(jsonTool.execute({ input: update }))).toEqual({
      content: String.raw`{"output":"Success. Updated the following files:\nM f\n","metadata":{"exit_code":0,"duration_seconds":T}}`,
      success: true,
    });
  });

  it("tells seconds with one decimal", async ({ root }) => {
    const slow: PatchFiles = {
      ...hostFiles,
      async read(path, options) {
        await new Promise((resolve) => setTimeout(resolve, 260));
        return await hostFiles.read(path, options);
      },
    };
    const { content } = await applyPatchTool(
      createPatcher(() => slow),
      { cwd: root },
    ).execute({ input: update });
    const [, seconds] = /^Wall time: (\d+\.\d) seconds$/m.exec(content) ?? [];
    expect(Number(seconds)).toBeGreaterThanOrEqual(0.3);
  });

  it.for([
    [
      "",
      "apply_patch verification failed: invalid patch: The last line of the patch must be '*** End Patch'",
    ],
    [
      "hello",
      "apply_patch verification failed: invalid patch: The first line of the patch must be '*** Begin Patch'",
    ],
    [patchOf(), "patch rejected: empty patch"],
    [
      patchOf("*** Update File: f"),
      "apply_patch verification failed: invalid hunk at line 2, Update file hunk for path 'f' is empty",
    ],
    [
      patchOf("*** Update File: no", "+a"),
      "apply_patch verification failed: Failed to read file to update ROOT/no: No such file or directory (os error 2)",
    ],
    [
      patchOf("*** Update File: f", "-x"),
      "apply_patch verification failed: Failed to find expected lines in ROOT/f:\nx",
    ],
    [
      patchOf("*** Add File: f/g"),
      "Exit code: 1\nWall time: T seconds\nOutput:\nFailed to write file ROOT/f/g: Not a directory (os error 20)\n",
    ],
  ] as const)("answers %j with what is wrong", async ([input, content], { tool, root }) => {
    expect(await untimed(tool.execute({ input }))).toEqual({
      content: content.replaceAll("ROOT", root),
      success: false,
    });
    expect(await readFile(join(root, "f"), "utf8")).toBe("a\nb\n");
  });

  it("answers as JSON only what a patch did", async ({ jsonTool, root }) => {
    const failed = await jsonTool.execute({ input: patchOf("*** Add File: f/g") });
    const output = `Failed to write file ${root}/f/g: Not a directory (os error 20)\n`;
    expect(JSON.parse(failed.content)).toEqual({
      output,
      metadata: { exit_code: 1, duration_seconds: expect.any(Number) },
    });
    expect((await jsonTool.execute({ input: patchOf() })).content).toBe("patch rejected: empty patch");
  });

  it("refuses arguments without a patch", async ({ tool }) => {
    const untyped: Tool = tool;
    await expect(untyped.execute({})).rejects.toMatchObject({
      code: "tool.invalid-input",
      message: "failed to parse function arguments: missing field `input`",
    });
  });

  it("names the files that a call would change", ({ tool, root }) => {
    expect(tool.changedFiles?.({ input: update })).toEqual([join(root, "f")]);
    expect(tool.changedFiles?.({ input: "hello" })).toEqual([]);
    expect(tool.changedFiles?.({})).toBeNull();
  });

  it("tells of a patch that fits before and after its changes, and of no other", async ({ tool, root }) => {
    const told: ToolActivity[] = [];
    const onActivity = (activity: ToolActivity) => void told.push(activity);
    const patch = patchOf("*** Update File: f", "*** Move to: g", "-a", "*** Add File: h");
    await tool.execute({ input: patch }, { onActivity });
    await tool.execute({ input: patchOf("*** Delete File: no") }, { onActivity });
    const changes = [
      { kind: "update", path: join(root, "f") },
      { kind: "add", path: join(root, "h") },
    ];
    expect(told).toEqual([
      { kind: "patch-started", changes, patch },
      {
        kind: "patch-ended",
        changes,
        diffs: [
          { path: join(root, "g"), movedFrom: join(root, "f"), before: "a\nb\n", after: "b\n" },
          { path: join(root, "h"), movedFrom: null, before: null, after: "" },
        ],
        success: true,
      },
    ]);
  });

  it("rejects with the reason of an abort", async ({ tool }) => {
    const reason = new Error("enough");
    await expect(tool.execute({ input: update }, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  });
});

describe("applyPatch", () => {
  const face = (root: string) =>
    applyPatchForPrograms({ patcher: createPatcher(() => hostFiles), cwd: root });

  it("applies a unified diff", async ({ root }) => {
    const patch = "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-a\n+x\n b\n";
    expect(await face(root).execute({ patch })).toEqual({
      success: true,
      stdout: "Success. Updated the following files:\nM f\n",
      stderr: "",
      content: "Success. Updated the following files:\nM f\n",
    });
    expect(await readFile(join(root, "f"), "utf8")).toBe("x\nb\n");
  });

  it("starts paths at the directory it is given", async ({ root }) => {
    expect(await face("/").execute({ patch: update, cwd: root })).toMatchObject({ success: true });
    expect(await face(root).execute({ patch: patchOf("*** Add File: g"), cwd: "sub" })).toMatchObject({
      success: true,
    });
    expect(await readFile(join(root, "sub/g"), "utf8")).toBe("");
  });

  it.for([
    ["hello", "invalid patch: The first line of the patch must be '*** Begin Patch'\n"],
    [patchOf(), "No files were modified.\n"],
    ["--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\n+y\n", "Failed to find expected lines in ROOT/f:\nx\n"],
    [patchOf("*** Add File: f/g"), "Failed to write file ROOT/f/g: Not a directory (os error 20)\n"],
  ] as const)("tells %j what is wrong on stderr", async ([patch, text], { root }) => {
    const stderr = text.replace("ROOT", root);
    expect(await face(root).execute({ patch })).toEqual({
      success: false,
      stdout: "",
      stderr,
      content: stderr,
    });
  });
});
