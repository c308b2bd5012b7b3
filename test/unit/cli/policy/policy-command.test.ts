import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { commands } from "../../../../src/cli/command-list.js";
import { runProgram } from "../../../../src/cli/program.js";
import { loadPolicy } from "../../../../src/sandbox/policy/load-policy.js";
import { SANDBOX_MODES } from "../../../../src/sandbox/policy/modes.js";
import { testContext } from "../../../support/cli-context.js";

let cwd: string;
beforeEach(async () => {
  cwd = await mkdtemp(join(tmpdir(), "brig-policy-"));
  onTestFinished(() => rm(cwd, { recursive: true }));
});

/** The exit status is that of the process. */
async function policy(...argv: string[]) {
  const context = { ...testContext(), cwd };
  const failure = await runProgram(["policy", ...argv], { context, commands });
  return { status: failure ?? context.exitStatus, ...context.written() };
}

async function file(text: string): Promise<string> {
  await writeFile(join(cwd, "mine.toml"), text);
  return "mine.toml";
}

describe("brig policy show", () => {
  it.each(SANDBOX_MODES)("prints %s as a file that --policy takes for the same", async (mode) => {
    const { status, stdout } = await policy("show", mode);
    expect(status).toBe(0);
    const shown = await loadPolicy(join(cwd, await file(stdout)));
    expect(shown.policy).toEqual((await loadPolicy(mode)).policy);
  });

  it("prints a file that extends a mode with everything in it", async () => {
    const short = await file('extends = "workspace-write"\n[limits]\nmemoryMb = 512\n');
    const { policy: meant } = await loadPolicy(join(cwd, short));
    const { stdout } = await policy("show", short);
    expect(stdout).not.toContain("extends");
    expect(stdout).toMatch(/[^\n]\n$/);
    expect((await loadPolicy(join(cwd, await file(stdout)))).policy).toEqual(meant);
  });

  it.each([
    ["workspace", "use one of read-only, workspace-write, danger-full-access"],
    ["./none.toml", "does not exist"],
  ])("of what there is not ends with 2: %s", async (name, words) => {
    const { status, stderr } = await policy("show", name);
    expect(status).toBe(2);
    expect(stderr).toContain(words);
  });

  it("of a file that is not valid says what is wrong with it", async () => {
    const { status, stdout, stderr } = await policy("show", await file('extends = "none"'));
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    expect(stderr).toContain("extends must be one of");
  });
});

describe("brig policy check", () => {
  it("says that a file is valid, and what it extends", async () => {
    const { stdout: whole } = await policy("show", "read-only");
    expect(await policy("check", await file(whole))).toEqual({
      status: 0,
      stdout: "mine.toml is valid\n",
      stderr: "",
    });
    const { stdout } = await policy("check", await file('extends = "read-only"'));
    expect(stdout).toBe("mine.toml is valid, and extends read-only\n");
  });

  const wrong = [
    'extends = "workspace-write"',
    'user = "alice"',
    "[limits]",
    "pids = 1",
    "cpu = 2 # cores",
    "[[tmpfs]]",
    'path = "/tmp"',
    "[[tmpfs]] # the second",
    'path = "/x"',
    "sizeMb = 0",
  ].join("\n");

  it("says each error with its line, and ends with 2", async () => {
    const { status, stdout } = await policy("check", await file(wrong));
    expect(status).toBe(2);
    const lines = stdout.trim().split("\n");
    expect(lines).toContainEqual(expect.stringMatching(/^mine\.toml:2: user: must be/));
    expect(lines).toContain("mine.toml:4: limits.pids must be 16 or more");
    expect(lines).toContainEqual(expect.stringMatching(/^mine\.toml:5: limits\.cpu is not a field/));
    expect(lines).toContain("mine.toml:10: tmpfs[1].sizeMb must be 1 or more");
    // What is missing has the place of the table in which it is.
    expect(lines).toContain("mine.toml:8: tmpfs[1].mode is missing");
  });

  it("says the same as JSON", async () => {
    const { status, stdout } = await policy("check", "--json", await file(wrong));
    const { errors, ...rest } = JSON.parse(stdout);
    expect(status).toBe(2);
    expect(rest).toEqual({ file: join(cwd, "mine.toml"), valid: false, extends: null });
    expect(errors).toContainEqual({
      line: 4,
      column: null,
      field: "limits.pids",
      message: "limits.pids must be 16 or more",
    });
    const good = await policy("check", "--json", await file('extends = "read-only"'));
    expect(JSON.parse(good.stdout)).toMatchObject({ valid: true, extends: "read-only", errors: [] });
  });

  it("says where something is no TOML", async () => {
    const { status, stdout } = await policy("check", await file('user = "host"\nnetwork = \n'));
    expect(status).toBe(2);
    expect(stdout).toMatch(/^mine\.toml:2:\d+: not TOML: /);
  });

  it("says what is missing of an empty file, without a line", async () => {
    const { stdout } = await policy("check", await file(""));
    expect(stdout).toContain("mine.toml: rootfs is missing\n");
  });

  it("of a file that is not there ends with 2", async () => {
    expect(await policy("check", "none.toml")).toMatchObject({ status: 2, stdout: "" });
  });
});
