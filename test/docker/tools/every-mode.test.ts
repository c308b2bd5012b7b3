import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { SandboxMode } from "../../../src/sandbox/policy/modes.js";
import { createToolRegistry, type ToolRegistry } from "../../../src/tools/registry.js";
import { treeDigest } from "../../support/host-tree.js";
import { becomeHostUser, giveToHostUser, type HostUser, OWNING_USERS } from "../../support/host-users.js";
import { pngPicture } from "../../support/pictures.js";
import { openTestSandbox, type TestSandbox } from "../../support/sandbox.js";
import { patchOf } from "../../unit/tools/patch/patches.js";

/** The call makes the file it is given. */
type Making = (tools: ToolRegistry, file: string) => Promise<{ content: string; success: boolean }>;

const make = (file: string) => `echo made > ${file}`;
const addition = (file: string) => patchOf(`*** Add File: ${file}`, "+made");

const making: readonly (readonly [string, Making])[] = [
  ["shell", (tools, file) => tools.get("shell").execute({ command: ["sh", "-c", make(file)] })],
  ["local_shell", (tools, file) => tools.get("local_shell").execute({ command: ["sh", "-c", make(file)] })],
  ["shell_command", (tools, file) => tools.get("shell_command").execute({ command: make(file) })],
  ["exec_command", (tools, file) => tools.get("exec_command").execute({ cmd: make(file) })],
  [
    "exec_command with a terminal",
    (tools, file) => tools.get("exec_command").execute({ cmd: make(file), tty: true }),
  ],
  ["write_stdin", (tools, file) => typeInto(tools, `${make(file)}; exit\n`)],
  ["apply_patch", (tools, file) => tools.get("apply_patch").execute({ input: addition(file) })],
  [
    "apply_patch in a shell's heredoc",
    (tools, file) =>
      tools.get("shell_command").execute({ command: `apply_patch <<'EOF'\n${addition(file)}\nEOF` }),
  ],
  [
    "js_repl",
    (tools, file) =>
      tools.get("js_repl").execute({ input: `(await import("node:fs")).writeFileSync("${file}", "made")` }),
  ],
  [
    "js_repl by another tool",
    (tools, file) =>
      tools.get("js_repl").execute({
        input: `const { content } = await codex.tool("apply_patch", ${JSON.stringify(addition(file))}); console.log(content)`,
      }),
  ],
  ["exec", (tools, file) => tools.get("exec").execute({ command: ["sh", "-c", make(file)] })],
  [
    "applyPatch",
    (tools, file) =>
      tools.get("applyPatch").execute({ patch: `--- /dev/null\n+++ b/${file}\n@@ -0,0 +1 @@\n+made\n` }),
  ],
];

/** These change files that are there. */
const patches: readonly (readonly [string, readonly string[]])[] = [
  ["an update", ["*** Update File: old", "@@", "-old", "+new"]],
  ["a deletion", ["*** Delete File: old"]],
  ["a move", ["*** Update File: old", "*** Move to: elsewhere/old", "@@", "-old", "+new"]],
];

const looking: readonly (readonly [string, object])[] = [
  ["read_file", { file_path: "WORKSPACE/old" }],
  ["list_dir", { dir_path: "WORKSPACE" }],
  ["grep_files", { pattern: "old" }],
  ["view_image", { path: "picture" }],
  ["update_plan", { plan: [{ step: "look", status: "completed" }] }],
  ["readFile", { filePath: "old" }],
  ["listDir", { path: "." }],
  ["grepFiles", { pattern: "old" }],
  ["fileSearch", { pattern: "old" }],
];

async function typeInto(tools: ToolRegistry, chars: string) {
  const { content } = await tools.get("exec_command").execute({ cmd: "sh", tty: true, yield_time_ms: 250 });
  const session = Number(/session ID (\d+)/.exec(content)?.[1]);
  return await tools.get("write_stdin").execute({ session_id: session, chars, yield_time_ms: 30_000 });
}

const own = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };

/** What is refused is refused to each user; what is done is done alike. */
const everyMode: readonly { mode: SandboxMode; user: HostUser }[] = [
  ...OWNING_USERS.map((user) => ({ mode: "read-only" as const, user })),
  { mode: "workspace-write", user: own },
  { mode: "danger-full-access", user: own },
];

describe.each(everyMode)("under $mode for uid $user.uid", ({ mode, user }) => {
  let opened: TestSandbox;
  let tools: ToolRegistry;
  let before: string;

  beforeAll(async () => {
    becomeHostUser(user);
    opened = await openTestSandbox({ mode });
    const { workspace } = opened;
    await writeFile(join(workspace, "old"), "old\n");
    await writeFile(join(workspace, "picture"), pngPicture({ width: 4, height: 3 }));
    await mkdir(join(workspace, "directory"));
    await giveToHostUser(workspace);
    tools = createToolRegistry(opened.sandbox, { cwd: workspace, gates: { js_repl: true } });
    before = await treeDigest(workspace);
  });

  afterAll(async () => {
    await tools.close();
    await opened[Symbol.asyncDispose]();
  });

  it.each(looking)("%s looks, and changes nothing", async (name, args) => {
    const here = JSON.parse(JSON.stringify(args).replace("WORKSPACE", opened.workspace));
    const digest = await treeDigest(opened.workspace);
    const { content, success } = await tools.get(name).execute(here);
    expect(success, content).toBe(true);
    expect(await treeDigest(opened.workspace)).toBe(digest);
  });

  if (mode === "read-only") {
    it.each(making)(
      "%s makes no file: the kernel refuses it, and the tree is as it was",
      async (name, call) => {
        const { content } = await call(tools, `made by ${name}`.replaceAll(" ", "-"));
        expect(content).toMatch(/read-only file system|EROFS/i);
        expect(await treeDigest(opened.workspace)).toBe(before);
      },
    );

    it.each(patches)(
      "%s by apply_patch is refused by the kernel, and the tree is as it was",
      async (_, lines) => {
        const { content, success } = await tools.get("apply_patch").execute({ input: patchOf(...lines) });
        expect(content).toMatch(/Read-only file system \(os error 30\)\n$/);
        expect(success).toBe(false);
        expect(await treeDigest(opened.workspace)).toBe(before);
      },
    );

    it("nothing that a command tries changes the tree", async () => {
      const tries = [
        "rm old",
        "mv old new",
        "chmod 777 old",
        "touch old",
        "ln old link",
        "mkdir new",
        "rmdir directory",
      ];
      const command = tries.map((line) => `${line} || true`).join("; ");
      const { content } = await tools.get("shell").execute({ command: ["sh", "-c", command] });
      expect(content.match(/Read-only file system/g)).toHaveLength(tries.length);
      expect(await treeDigest(opened.workspace)).toBe(before);
    });
  } else {
    it.each(making)("%s makes a file of the workspace", async (name, call) => {
      const file = `made by ${name}`.replaceAll(" ", "-");
      const { content } = await call(tools, file);
      expect(existsSync(join(opened.workspace, file)), content).toBe(true);
    });

    it.each(patches)("%s by apply_patch is done", async (_, lines) => {
      await writeFile(join(opened.workspace, "old"), "old\n");
      const { content, success } = await tools.get("apply_patch").execute({ input: patchOf(...lines) });
      expect(success, content).toBe(true);
    });
  }

  it("a tool that asks somebody is refused where nobody is, and web_search is no function", async () => {
    const question = {
      id: "q",
      header: "Which",
      question: "Which?",
      options: [{ label: "a", description: "a" }],
    };
    expect(await tools.get("request_user_input").execute({ questions: [question] })).toEqual({
      content: "request_user_input is unavailable: nobody can answer in this session",
      success: false,
    });
    expect((await tools.get("web_search").execute({})).success).toBe(false);
  });
});
