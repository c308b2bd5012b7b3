import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { createToolRegistry } from "../../../../src/tools/registry.js";
import type { ToolActivity } from "../../../../src/tools/tool.js";
import { MemorySandbox } from "../../../support/memory-sandbox.js";

const sandbox = new MemorySandbox();
const tools = createToolRegistry(sandbox, { cwd: "/tmp", truncation: { mode: "bytes", limit: 10_000 } });

afterAll(() => sandbox.close());

function shell(script: string, more: object = {}) {
  return tools.get("shell").execute({ command: ["/bin/sh", "-c", script], ...more });
}

describe("shell", () => {
  it("answers with JSON that has output, exit code and a duration with one decimal", async () => {
    const { content, success } = await shell('echo "a\\"b"');
    expect(content).toMatch(
      /^\{"output":"a\\"b\\n","metadata":\{"exit_code":0,"duration_seconds":0\.\d\}\}$/,
    );
    expect(success).toBe(true);
  });

  it("puts all of stderr after all of stdout", async () => {
    const { content } = await shell("echo e1 >&2; echo o1; echo e2 >&2; echo o2");
    expect(JSON.parse(content)).toMatchObject({ output: "o1\no2\ne1\ne2\n" });
  });

  it("gives a failing command the same format", async () => {
    const { content, success } = await shell("echo no; exit 7");
    expect(JSON.parse(content)).toMatchObject({ output: "no\n", metadata: { exit_code: 7 } });
    expect(success).toBe(false);
  });

  it("tells programs how the command ended", async () => {
    const { command } = await shell("kill -TERM $$");
    expect(command).toMatchObject({ exitCode: 143, signal: "SIGTERM", timedOut: false, startFailure: null });
    expect((await tools.get("exec_command").execute({ cmd: "exit 3" })).command).toMatchObject({
      exitCode: 3,
    });
    const others = createToolRegistry(sandbox, { cwd: "/tmp" });
    const running = await others.get("exec_command").execute({ cmd: "sleep 9", yield_time_ms: 250 });
    await others.close();
    expect(running.command).toBeUndefined();
    expect((await shell("true", { justification: "why?" })).command).toBeUndefined();
  });

  it("says how long a command ran that timed out, with exit code 124 and what it had printed", async () => {
    const { content, success } = await shell("echo early; sleep 30", { timeout_ms: 1000 });
    const parsed = JSON.parse(content);
    expect(parsed.output).toMatch(/^command timed out after \d+ milliseconds\nearly\n$/);
    expect(parsed.metadata.exit_code).toBe(124);
    expect(success).toBe(false);
  });

  it("understands `timeout` as well, and `timeout_ms` wins", async () => {
    const { content } = await shell("sleep 30", { timeout: 100 });
    expect(JSON.parse(content).metadata.exit_code).toBe(124);
    const other = await shell("sleep 0.3", { timeout: 100, timeout_ms: 5000 });
    expect(JSON.parse(other.content).metadata.exit_code).toBe(0);
  });

  it("runs in `workdir`, relative to the session's directory, and an empty one means the default", async () => {
    const where = async (workdir: string) => JSON.parse((await shell("pwd", { workdir })).content).output;
    expect(await where("/usr/bin")).toBe("/usr/bin\n");
    expect(await where("..")).toBe("/\n");
    expect(await where("")).toBe("/tmp\n");
  });

  it("names the signal that killed the command, and keeps its output", async () => {
    expect((await shell("kill -KILL $$")).content).toBe("execution error: Sandbox(Signal(9))");
    expect((await shell("echo before; kill -SEGV $$")).content).toBe(
      "execution error: Sandbox(Signal(11))\nbefore\n",
    );
  });

  it("says what could not be started", async () => {
    const { content, success } = await tools.get("shell").execute({ command: ["no-such-program", "x"] });
    expect(content).toBe(
      'execution error: Io(Os { code: 2, kind: NotFound, message: "No such file or directory" })\n' +
        "no-such-program: command not found",
    );
    expect(success).toBe(false);
  });

  it("says when a file is not a program", async () => {
    const { content } = await tools.get("shell").execute({ command: ["/etc/passwd"] });
    expect(content).toBe(
      'execution error: Io(Os { code: 13, kind: PermissionDenied, message: "Permission denied" })\n' +
        "/etc/passwd: permission denied",
    );
  });

  it("says when the directory does not exist", async () => {
    const { content } = await shell("pwd", { workdir: "/proc/no/such/dir" });
    expect(content).toBe(
      'execution error: Io(Os { code: 2, kind: NotFound, message: "No such file or directory" })\n' +
        "the working directory /proc/no/such/dir cannot be entered: ENOENT",
    );
  });

  it("refuses a command without a program", async () => {
    expect((await tools.get("shell").execute({ command: [] })).content).toMatch(/^execution error: /);
  });

  it("gives the command no input", async () => {
    expect(JSON.parse((await shell("cat; echo end")).content).output).toBe("end\n");
  });

  it("says the number of lines of an output over the budget, and what it cut", async () => {
    const { output } = JSON.parse((await shell("seq 1 5000")).content);
    expect(output).toMatch(
      /^Warning: truncated output \(original token count: 5974\)\nTotal output lines: 5000\n\n1\n2\n/,
    );
    expect(output).toContain("…13893 chars truncated…");
    expect(output).toMatch(/4999\n5000\n$/);
  });

  it("counts what it never kept: 3 MB of output lose nothing in the figures", async () => {
    const { output } = JSON.parse((await shell("head -c 3000000 /dev/zero | tr '\\0' x")).content);
    expect(output).toContain("Total output lines: 1\n\n");
    expect(output).toContain("…2990000 chars truncated…");
  });

  it("keeps 1 MiB of both streams together, two thirds for stderr, and says what is missing", async () => {
    const activities: ToolActivity[] = [];
    const script = "head -c 2000000 /dev/zero | tr '\\0' o; head -c 2000000 /dev/zero | tr '\\0' e >&2";
    await tools
      .get("shell")
      .execute(
        { command: ["/bin/sh", "-c", script] },
        { onActivity: (activity) => activities.push(activity) },
      );
    const ended = activities.find((activity) => activity.kind === "command-ended");
    const whole = ended?.output ?? "";
    expect(whole.replaceAll(/[^o]/g, "").length).toBeGreaterThan(349_525);
    expect(whole.match(/e{1000,}/g)?.join("").length).toBe(699_051);
    expect(whole.match(/\.\.\. \d+ bytes omitted \.\.\./g)).toEqual([
      "... 1650475 bytes omitted ...",
      "... 1300949 bytes omitted ...",
    ]);
  });

  it("rejects with the reason when it is aborted, and leaves no process", async () => {
    const stop = new AbortController();
    const call = tools.get("shell").execute({ command: ["sleep", "30"] }, { signal: stop.signal });
    setTimeout(() => {
      stop.abort(new Error("enough"));
    }, 100);
    await expect(call).rejects.toThrow("enough");
    expect(sandbox.runningCount).toBe(0);
  });

  it("tells who follows what runs, what it prints and how it ended", async () => {
    const activities: ToolActivity[] = [];
    await tools
      .get("shell")
      .execute({ command: ["echo", "a b"] }, { onActivity: (activity) => activities.push(activity) });
    expect(activities.map(({ kind }) => kind)).toEqual([
      "command-started",
      "command-output",
      "command-ended",
    ]);
    expect(activities[0]).toMatchObject({ argv: ["echo", "a b"], cwd: "/tmp" });
    expect(activities[2]).toMatchObject({ exitCode: 0, output: "a b\n" });
  });

  it("refuses to leave the sandbox: nobody is there to approve", async () => {
    const { content, success } = await shell("true", { sandbox_permissions: "require_escalated" });
    expect(content).toBe(
      "approval policy is Never; reject command — you should not ask for escalated permissions if the approval policy is Never",
    );
    expect(success).toBe(false);
  });
});

describe("shell_command", () => {
  let activities: ToolActivity[] = [];

  beforeEach(() => {
    activities = [];
  });

  function shellCommand(command: string, more: object = {}) {
    return tools
      .get("shell_command")
      .execute({ command, ...more }, { onActivity: (activity) => activities.push(activity) });
  }

  it("answers with sections", async () => {
    const { content, success } = await shellCommand("echo hello");
    expect(content).toMatch(/^Exit code: 0\nWall time: 0(\.\d)? seconds\nOutput:\nhello\n$/);
    expect(success).toBe(true);
  });

  it("says the number of lines only when cutting changed it", async () => {
    expect((await shellCommand("seq 1 5000")).content).toMatch(
      /^Exit code: 0\nWall time: \S+ seconds\nTotal output lines: 5000\nOutput:\n1\n2\n/,
    );
    expect((await shellCommand("head -c 20000 /dev/zero | tr '\\0' x")).content).toMatch(
      /^Exit code: 0\nWall time: \S+ seconds\nOutput:\nx+…10000 chars truncated…x+$/,
    );
  });

  it("runs in a login shell unless told otherwise", async () => {
    await shellCommand("true");
    await shellCommand("true", { login: false });
    const started = activities.filter((activity) => activity.kind === "command-started");
    expect(started.map(({ argv }) => argv.slice(1))).toEqual([
      ["-lc", "true"],
      ["-c", "true"],
    ]);
    expect(started[0]?.argv[0]).toMatch(/\/bash$/);
  });

  it("treats null as absent, as models send it", async () => {
    const { content } = await shellCommand("pwd", { workdir: null, timeout_ms: null, login: null });
    expect(content).toContain("Output:\n/tmp\n");
  });

  it("refuses a login shell where none is allowed, and uses none by itself", async () => {
    const strict = createToolRegistry(sandbox, { cwd: "/tmp", allowsLoginShell: false });
    const refused = await strict.get("shell_command").execute({ command: "true", login: true });
    expect(refused).toEqual({
      content: "login shell is disabled by config; omit `login` or set it to false.",
      success: false,
    });
    const plain = await strict
      .get("shell_command")
      .execute({ command: "shopt -q login_shell && echo login || echo plain" });
    expect(plain.content).toContain("Output:\nplain\n");
  });

  it("keeps the directories of the image's PATH that a login profile drops", async () => {
    const image = new MemorySandbox({
      PATH: `/opt/tool's/bin:${process.env.PATH}`,
      HOME: "/proc/nonexistent",
    });
    const registry = createToolRegistry(image, { cwd: "/tmp" });
    const { content } = await registry.get("shell_command").execute({ command: 'echo "$PATH"' });
    expect(content).toContain("Output:\n/opt/tool's/bin:");
  });
});

it("shell answers in JSON whichever form of apply_patch is offered beside it", async () => {
  for (const apply_patch of ["freeform", "function", false] as const) {
    const registry = createToolRegistry(new MemorySandbox(), { cwd: "/tmp", gates: { apply_patch } });
    const { content } = await registry.get("shell").execute({ command: ["echo", "hi"] });
    expect(JSON.parse(content)).toMatchObject({ output: "hi\n", metadata: { exit_code: 0 } });
  }
});
