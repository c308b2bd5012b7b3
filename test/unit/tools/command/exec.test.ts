import { afterAll, describe, expect, it } from "vitest";
import type { ExecToolResult } from "../../../../src/tools/command/exec-tool.js";
import { createToolRegistry } from "../../../../src/tools/registry.js";
import { MemorySandbox } from "../../../support/memory-sandbox.js";

const sandbox = new MemorySandbox();
const tools = createToolRegistry(sandbox, { cwd: "/tmp", environment: { FROM_REGISTRY: "r", BOTH: "r" } });
const exec = (args: object) => tools.get("exec" as string).execute(args) as Promise<ExecToolResult>;
const sh = (script: string, args: object = {}) => exec({ command: ["/bin/sh", "-c", script], ...args });

afterAll(() => sandbox.close());

describe("exec", () => {
  it("keeps the outputs apart and together, with the exit code", async () => {
    expect(await sh("echo out; sleep 0.1; echo err >&2; exit 3")).toEqual({
      exitCode: 3,
      stdout: { text: "out\n" },
      stderr: { text: "err\n" },
      aggregatedOutput: { text: "out\nerr\n" },
      durationMs: expect.any(Number),
      timedOut: false,
      content: "out\nerr\n",
      success: false,
    });
  });

  it("runs where it is told, with the variables of the registry and its own", async () => {
    const script = 'pwd; echo "$FROM_REGISTRY $BOTH $OWN"';
    expect(await sh(script, { cwd: "/usr", env: { BOTH: "own", OWN: "own" } })).toMatchObject({
      stdout: { text: "/usr\nr own own\n" },
      success: true,
    });
    expect(await sh("pwd", { cwd: "" })).toMatchObject({ stdout: { text: "/tmp\n" } });
  });

  it("ends what takes too long, and keeps what was printed", async () => {
    expect(await sh("echo early; sleep 60", { timeoutMs: 200 })).toMatchObject({
      exitCode: 124,
      timedOut: true,
      stdout: { text: "early\n" },
    });
  });

  it("says after how many lines an output of more than 1 MiB was cut", async () => {
    const { stdout } = await sh("seq 1000000");
    const lines = stdout.text.split("\n");
    expect(lines[(stdout.truncatedAfterLines ?? 0) + 1]).toMatch(/^\.\.\. \d+ bytes omitted \.\.\.$/);
    expect(lines[0]).toBe("1");
    expect(lines.at(-2)).toBe("1000000");
  });

  it("tells of a program that is not there", async () => {
    expect(await exec({ command: ["/proc/nonexistent"] })).toMatchObject({
      exitCode: 127,
      stderr: { text: expect.stringContaining("not found") },
      success: false,
    });
  });

  it.each([
    [{ command: [] }, "tool.invalid-input"],
    [{ command: "ls" }, "tool.invalid-input"],
    [{ command: ["ls"], timeoutMs: 0 }, "tool.invalid-input"],
    [{ command: ["ls"], env: { A: 1 } }, "tool.invalid-input"],
    [{ command: ["ls", "a\0b"] }, "exec.invalid"],
    [{ command: ["ls"], cwd: "/proc/nonexistent" }, "exec.bad-cwd"],
  ])("fails with %j by a typed error", async (args, code) => {
    await expect(Promise.resolve().then(() => exec(args))).rejects.toMatchObject({ code });
  });

  it("stops when its signal is aborted", async () => {
    const call = tools
      .get("exec")
      .execute({ command: ["sleep", "60"] }, { signal: AbortSignal.timeout(100) });
    await expect(call).rejects.toMatchObject({ name: "TimeoutError" });
  });
});
