import { mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { brig } from "../support/cli.js";
import { brigHere } from "../support/cli-here.js";
import { temporaryDirectory } from "../support/sandbox.js";

let home: string;
let workspace: string;

beforeEach(async () => {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory[Symbol.asyncDispose]());
  home = join(directory.path, "home");
  workspace = join(directory.path, "workspace");
  await mkdir(home);
  await mkdir(join(workspace, ".brig"), { recursive: true });
});

function config(...args: string[]) {
  return brigHere(["config", ...args], ofTheTest());
}

function ofTheTest() {
  return { cwd: workspace, env: { BRIG_HOME: home, CODEX_HOME: join(home, "none") } };
}

describe("brig config", () => {
  it("shows what the files, the environment and -c come to, and where each value is from", async () => {
    await writeFile(join(home, "config.toml"), 'model = "m"\nsandbox_mode = "danger-full-access"\n');
    await writeFile(
      join(workspace, ".brig/config.toml"),
      'sandbox_mode = "workspace-write"\nmodel = "evil"\n',
    );
    const { exitCode, stdout, stderr } = await brig(
      ["config", "show", "--json", "-c", "lease_seconds=7"],
      ofTheTest(),
    );
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
    const shown = JSON.parse(stdout);
    expect(shown.values).toMatchObject({
      model: { value: "m", source: { kind: "file", line: 1 } },
      sandbox_mode: { value: "workspace-write", source: { kind: "workspace", line: 1 } },
      lease_seconds: { value: 7, source: { kind: "override" } },
    });
    expect(shown.warnings).toEqual([
      `${workspace}/.brig/config.toml: a workspace's own file can only tighten; ignored: model`,
    ]);
  });

  it("ends with 2 and the place of what is wrong", async () => {
    await writeFile(join(home, "config.toml"), "[tools\n");
    const { exitCode, stdout, stderr } = await config("show");
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: "" });
    expect(stderr).toMatch(/^brig: .*\/home\/config\.toml:1:\d+: /);
  });

  it("does not follow a link in the workspace", async () => {
    await symlink("/etc/passwd", join(workspace, ".brig/config.toml"));
    const { exitCode, stderr } = await config("show");
    expect(exitCode).toBe(0);
    expect(stderr).toMatch(/config\.toml is not read: it is a symbolic link/);
  });

  it("prints the path of the file", async () => {
    expect((await config("path")).stdout).toBe(`${home}/config.toml\n`);
  });
});

describe("a session", () => {
  async function run(...args: string[]) {
    const script = join(home, "script.yaml");
    const steps =
      'steps:\n  - calls:\n      - exec_command: { cmd: "echo from=$FROM; touch new" }\n  - text: done\n';
    await writeFile(script, steps);
    const env = { BRIG_HOME: home, CODEX_HOME: join(home, "none") };
    return await brigHere(["run", "--script", script, ...args, "go"], { cwd: workspace, env });
  }

  it("runs as the workspace's own file tightens it, with the variables that the person's file sets", async () => {
    await writeFile(join(home, "config.toml"), 'shell_environment_policy.set = { FROM = "the file" }\n');
    await writeFile(join(workspace, ".brig/config.toml"), 'sandbox_mode = "read-only"\n');
    const { exitCode, stdout, stderr } = await run();
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: "done\n" });
    expect(stderr).toContain("from=the file");
    expect(stderr).toContain("Read-only file system");
    expect(await readdir(workspace)).toEqual([".brig"]);
  });

  it("runs as a flag says, and says what gave way to it", async () => {
    await writeFile(join(workspace, ".brig/config.toml"), 'sandbox_mode = "read-only"\n');
    const { stderr } = await run("--sandbox", "workspace-write");
    expect(stderr).toContain("config.toml:1: sandbox_mode is overridden by --sandbox");
    expect(await readdir(workspace)).toEqual([".brig", "new"]);
  });

  it("does not start where the workspace's own file cannot be understood", async () => {
    await writeFile(join(workspace, ".brig/config.toml"), "sandbox_mode = read-only\n");
    const { exitCode, stderr } = await run();
    expect(exitCode).toBe(2);
    expect(stderr).toMatch(/\.brig\/config\.toml:1:\d+: /);
    expect(await readdir(workspace)).toEqual([".brig"]);
  });
});
