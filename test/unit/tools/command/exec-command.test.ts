import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createToolRegistry, type ToolRegistry } from "../../../../src/tools/registry.js";
import type { ToolActivity } from "../../../../src/tools/tool.js";
import { MemorySandbox } from "../../../support/memory-sandbox.js";

const sandbox = new MemorySandbox();
let tools = createRegistry();
const folder = mkdtempSync(join(tmpdir(), "brig-exec-"));
let marks = 0;
/** A file with which a command and its test wait for each other. */
let mark = "";

/** Ids count up from the lower bound. */
function createRegistry(): ToolRegistry {
  let next = 0;
  return createToolRegistry(sandbox, { cwd: "/tmp", random: (min) => min + next++ });
}

beforeEach(() => {
  mark = join(folder, `mark-${marks++}`);
});

afterAll(() => {
  rmSync(folder, { recursive: true });
});

afterEach(async () => {
  await tools.close();
  tools = createRegistry();
});

/** Comes back when the command has ended, or after `yield_time_ms`. */
function exec(cmd: string, more: object = {}) {
  return tools.get("exec_command").execute({ cmd, yield_time_ms: 30_000, login: false, ...more });
}

function write(session_id: number, chars: string, more: object = {}) {
  return tools.get("write_stdin").execute({ session_id, chars, ...more });
}

function outputOf(content: string): string {
  return content.slice(content.indexOf("Output:\n") + "Output:\n".length);
}

function sessionIdOf(content: string): number {
  return Number(/^Process running with session ID (\d+)$/m.exec(content)?.[1]);
}

describe("exec_command", () => {
  it("reports a command that ended with chunk id, wall time, exit code, token count and output", async () => {
    const { content, success } = await exec("echo hello");
    expect(content).toMatch(
      /^Chunk ID: [0-9a-f]{6}\nWall time: \d+\.\d{4} seconds\nProcess exited with code 0\nOriginal token count: 2\nOutput:\nhello\n$/,
    );
    expect(success).toBe(true);
  });

  it("keeps both streams in the order of their arrival", async () => {
    const { content } = await exec("echo o1; echo e1 >&2; echo o2; echo e2 >&2");
    expect(content).toMatch(/Output:\no1\ne1\no2\ne2\n$/);
  });

  it("gives a running command a session that write_stdin reads on, each output once", async () => {
    const script = `echo one; while [ ! -e ${mark} ]; do sleep 0.05; done; echo two; exit 5`;
    const first = await exec(script, { yield_time_ms: 250 });
    expect(first.content).toMatch(
      /\nProcess running with session ID \d+\nOriginal token count: \d\nOutput:\n(?:one\n)?$/,
    );
    const id = sessionIdOf(first.content);
    writeFileSync(mark, "");
    const second = await write(id, "", { yield_time_ms: 30_000 });
    expect(second.content).toMatch(/\nProcess exited with code 5\nOriginal token count: \d\nOutput:\n/);
    // A slow shell has printed nothing by the end of the first call.
    expect(outputOf(first.content) + outputOf(second.content)).toBe("one\ntwo\n");
    expect((await write(id, "")).content).toBe(`write_stdin failed: Unknown process id ${id}`);
  });

  it("comes back as soon as the command has ended, not at the end of the wait", async () => {
    // The wait is longer than the test may take.
    const { content } = await exec("true", { yield_time_ms: 30_000 });
    expect(content).toContain("Process exited with code 0");
  });

  it("waits at least 250 ms, however little is asked for", async () => {
    const started = performance.now();
    const { content } = await exec("sleep 60", { yield_time_ms: 0 });
    // A timer may be a millisecond early.
    expect(performance.now() - started).toBeGreaterThan(248);
    expect(sessionIdOf(content)).toBeGreaterThanOrEqual(1000);
  });

  it("never kills a command that goes on in the background", async () => {
    const { content } = await exec("sleep 60", { yield_time_ms: 250 });
    expect(sessionIdOf(content)).toBeGreaterThanOrEqual(1000);
    expect(sandbox.runningCount).toBe(1);
  });

  it("returns what a background child's open pipe would have held back", async () => {
    const { content } = await exec("echo kept; sleep 30 &");
    expect(content).toMatch(/Process exited with code 0\nOriginal token count: 2\nOutput:\nkept\n$/);
  });

  it("sets a plain environment", async () => {
    const { content } = await exec('echo "$TERM $NO_COLOR $PAGER $LANG $CODEX_CI [$COLORTERM]"');
    expect(content).toContain("Output:\ndumb 1 cat C.UTF-8 1 []\n");
  });

  it("has no terminal and no input by default", async () => {
    const { content } = await exec("test -t 0 || test -t 1 || echo none; cat");
    expect(content).toContain("Output:\nnone\n");
    const running = await exec("sleep 30", { yield_time_ms: 250 });
    expect((await write(sessionIdOf(running.content), "x")).content).toBe(
      "write_stdin failed: stdin is closed for this session; rerun exec_command with tty=true to keep stdin open",
    );
  });

  it("gives a terminal of 24 rows and 80 columns on request, and types into it", async () => {
    const first = await exec("stty size; read line; echo got:$line", { tty: true, yield_time_ms: 500 });
    const second = await write(sessionIdOf(first.content), "hello\n", { yield_time_ms: 30_000 });
    expect(first.content + second.content).toContain("24 80");
    expect(second.content).toContain("got:hello");
    expect(second.content).toContain("Process exited with code 0");
  });

  it("passes ctrl-C through as it is", async () => {
    const script = `trap 'echo interrupted; exit 9' INT; : > ${mark}; while :; do sleep 0.1; done`;
    const first = await exec(script, { tty: true, yield_time_ms: 250 });
    await vi.waitFor(() => expect(existsSync(mark)).toBe(true), { timeout: 15_000 });
    const second = await write(sessionIdOf(first.content), "\u0003", { yield_time_ms: 30_000 });
    expect(second.content).toContain("interrupted");
    expect(second.content).toContain("Process exited with code 9");
  });

  it("cuts to max_output_tokens and says how much there was", async () => {
    const { content } = await exec("seq 1 5000", { max_output_tokens: 100 });
    expect(content).toContain(
      "Original token count: 5974\nOutput:\nWarning: truncated output (original token count: 5974)\n" +
        "Total output lines: 5000\n\n1\n2\n",
    );
    expect(content).toContain("…5874 tokens truncated…");
  });

  it("never gives more than the model's policy, whatever is asked for", async () => {
    const { content } = await exec("head -c 100000 /dev/zero | tr '\\0' x", { max_output_tokens: 1_000_000 });
    expect(content).toContain("…15000 tokens truncated…");
  });

  it("says which shell could not be started", async () => {
    const { content, success } = await exec("echo it's", { shell: "/proc/no/such/shell" });
    expect(content).toBe(
      'exec_command failed for `/proc/no/such/shell -c "echo it\'s"`: ' +
        'CreateProcess { message: "No such file or directory (os error 2)" }\n' +
        "/proc/no/such/shell: command not found",
    );
    expect(success).toBe(false);
  });

  it("says that the directory does not exist, and keeps no session", async () => {
    const { content } = await exec("pwd", { workdir: "/proc/no/such/dir" });
    expect(content).toMatch(
      /^exec_command failed for `\S*sh -c pwd`: CreateProcess \{ message: "No such file or directory \(os error 2\)" \}\nthe working directory \/proc\/no\/such\/dir /,
    );
    expect((await exec("sleep 30", { yield_time_ms: 250 })).content).toContain("session ID 100");
  });

  it("says what no kernel would take", async () => {
    const { content, success } = await exec("echo a\0b");
    expect(content).toContain('CreateProcess { message: "an argument contains NUL" }');
    expect(success).toBe(false);
  });

  it("refuses to leave the sandbox in its own words", async () => {
    const { content } = await exec("true", { sandbox_permissions: "require_escalated" });
    expect(content).toBe(
      "approval policy is Never; reject command — you cannot ask for escalated permissions if the approval policy is Never",
    );
  });

  it("ends what it started when the call is aborted, before the call returns", async () => {
    const stop = new AbortController();
    const call = tools
      .get("exec_command")
      .execute({ cmd: "sleep 60", login: false }, { signal: stop.signal });
    await vi.waitFor(() => expect(sandbox.runningCount).toBe(1), { timeout: 15_000 });
    stop.abort(new Error("enough"));
    await expect(call).rejects.toThrow("enough");
    expect(sandbox.runningCount).toBe(0);
  });

  it("leaves a session that was handed out alive when a call that looks at it is aborted", async () => {
    const { content } = await exec("sleep 60", { yield_time_ms: 250 });
    const stop = new AbortController();
    const look = tools
      .get("write_stdin")
      .execute({ session_id: sessionIdOf(content) }, { signal: stop.signal });
    setTimeout(() => {
      stop.abort(new Error("enough"));
    }, 50);
    await expect(look).rejects.toThrow("enough");
    expect(sandbox.runningCount).toBe(1);
  });

  it("rejects with the reason of an abort while the program reacts to its input", async () => {
    const { content } = await exec("trap '' INT; sleep 60", { yield_time_ms: 250 });
    const stop = new AbortController();
    const interrupt = tools
      .get("write_stdin")
      .execute({ session_id: sessionIdOf(content), chars: "\u0003" }, { signal: stop.signal });
    setTimeout(() => {
      stop.abort(new Error("enough"));
    }, 20);
    await expect(interrupt).rejects.toThrow("enough");
  });

  it("tells who follows the whole output when the process ends after the call", async () => {
    const activities: ToolActivity[] = [];
    const { content } = await tools
      .get("exec_command")
      .execute(
        { cmd: "echo one; sleep 0.6; echo two", login: false, yield_time_ms: 250 },
        { onActivity: (activity) => activities.push(activity) },
      );
    await write(sessionIdOf(content), "");
    expect(activities.at(-1)).toMatchObject({ kind: "command-ended", exitCode: 0, output: "one\ntwo\n" });
  });
});
