import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { CallScheduler, type ToolCall } from "../../../../src/tools/call-scheduler.js";
import { createToolRegistry } from "../../../../src/tools/registry.js";
import type { ToolActivity } from "../../../../src/tools/tool.js";
import type { ToolGates } from "../../../../src/tools/tool-gates.js";
import { MemorySandbox } from "../../../support/memory-sandbox.js";

const root = mkdtempSync(join(tmpdir(), "brig-intercept-"));
const file = join(root, "a.txt");
const patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-old\n+new\n*** End Patch";
const heredoc = `apply_patch <<'EOF'\n${patch}\nEOF\n`;
const done = "Success. Updated the following files:\nM a.txt\n";

beforeEach(() => {
  writeFileSync(file, "old\n");
});

afterAll(() => {
  rmSync(root, { recursive: true });
});

async function run(name: string, args: object, { cwd = root, gates = {} as ToolGates } = {}) {
  const activities: ToolActivity[] = [];
  const output = await createToolRegistry(new MemorySandbox(), { cwd, gates })
    .get(name)
    .execute(args, { onActivity: (activity) => activities.push(activity) });
  return { ...output, activities, kinds: activities.map(({ kind }) => kind) };
}

describe("a command that does nothing but apply a patch", () => {
  it.each([
    ["shell", { command: ["apply_patch", patch] }, /^Exit code: 0\nWall time: [\d.]+ seconds\nOutput:\n/],
    ["shell", { command: ["bash", "-lc", heredoc] }, /^Exit code: 0\n/],
    ["local_shell", { command: ["sh", "-c", heredoc] }, /^Exit code: 0\n/],
    ["shell_command", { command: heredoc }, /^Exit code: 0\n/],
    ["exec_command", { cmd: heredoc }, /^Wall time: 0\.0000 seconds\nOutput:\nExit code: 0\n/],
  ])("is done by %s as a patch, and the model advised", async (name, args, head) => {
    const { content, success, kinds, activities } = await run(name, args);
    expect(content).toMatch(head);
    expect(content.endsWith(done)).toBe(true);
    expect({ success, text: readFileSync(file, "utf8") }).toEqual({ success: true, text: "new\n" });
    expect(kinds).toEqual(["advice", "patch-started", "patch-ended"]);
    expect(activities[0]).toEqual({
      kind: "advice",
      text: `Warning: apply_patch was requested via ${name}. Use the apply_patch tool instead of exec_command.`,
    });
    expect(activities[1]).toEqual({
      kind: "patch-started",
      changes: [{ path: file, kind: "update" }],
      patch,
    });
  });

  it("starts from the directory it changes to, and that from the call's own", async () => {
    const command = `cd ${root.slice(1)} && ${heredoc}`;
    expect((await run("shell_command", { command, workdir: "/" }, { cwd: "/tmp" })).success).toBe(true);
    expect(readFileSync(file, "utf8")).toBe("new\n");
  });

  it("is answered as the tool is in this session", async () => {
    const { content } = await run(
      "shell",
      { command: ["apply_patch", patch] },
      {
        gates: { apply_patch: "function" },
      },
    );
    expect(JSON.parse(content)).toMatchObject({ output: done, metadata: { exit_code: 0 } });
  });

  it.each([
    ["shell_command", "command"],
    ["exec_command", "cmd"],
  ])("that cannot be applied is answered by %s as by the tool for patches", async (name, key) => {
    const { content, success } = await run(name, { [key]: heredoc.replace("-old", "-older") });
    expect(content).toBe(`apply_patch verification failed: Failed to find expected lines in ${file}:\nolder`);
    expect(success).toBe(false);
  });

  it.each([
    ["shell_command", "command"],
    ["exec_command", "cmd"],
  ])("is refused by %s when it is the patch alone", async (name, key) => {
    const { content, success } = await run(name, { [key]: patch });
    expect(content).toBe(
      'apply_patch verification failed: patch detected without explicit call to apply_patch. Rerun as ["apply_patch", "<patch>"]',
    );
    expect(success).toBe(false);
  });

  it("is run as it is where apply_patch is off", async () => {
    const { kinds, success } = await run(
      "shell_command",
      { command: heredoc, login: false },
      {
        gates: { apply_patch: false },
      },
    );
    expect(kinds).toContain("command-started");
    expect({ success, text: readFileSync(file, "utf8") }).toEqual({ success: false, text: "old\n" });
  });
});

describe("apply_patch", () => {
  it("is offered as text of a grammar, or as a function", () => {
    const specs = (gates: ToolGates) =>
      createToolRegistry(new MemorySandbox(), { cwd: root, gates }).getSpecs();
    const custom = { type: "custom", name: "apply_patch", format: { type: "grammar", syntax: "lark" } };
    expect(specs({})).toContainEqual(
      expect.objectContaining({ ...custom, format: expect.objectContaining(custom.format) }),
    );
    expect(specs({ apply_patch: "function" })).toContainEqual(
      expect.objectContaining({ type: "function", name: "apply_patch" }),
    );
    expect(JSON.stringify(specs({ apply_patch: false }))).not.toContain('"name":"apply_patch"');
  });

  it("runs beside a patch of another file, and after one of the same and a look at any", async () => {
    const tools = createToolRegistry(new MemorySandbox(), { cwd: root });
    const scheduler = new CallScheduler(tools, { signal: new AbortController().signal });
    const call = (callId: string, input: string): ToolCall => ({
      callId,
      name: "apply_patch",
      kind: "custom",
      input,
    });
    const outcomes = await Promise.all([
      scheduler.run(call("a", patch)),
      scheduler.run(call("b", patch.replace("-old", "-new").replace("+new", "+newer"))),
      scheduler.run({
        callId: "c",
        name: "read_file",
        kind: "function",
        input: JSON.stringify({ file_path: file }),
      }),
      scheduler.run(call("d", "*** Begin Patch\n*** Add File: b.txt\n+x\n*** End Patch")),
    ]);
    expect(outcomes.map(({ content }) => content.split("\n").at(-2) ?? content)).toEqual([
      "M a.txt",
      "M a.txt",
      "L1: newer",
      "A b.txt",
    ]);
  });
});
