import { lstat, mkdir, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { brig } from "../support/cli.js";
import { brigHere } from "../support/cli-here.js";
import { temporaryDirectory } from "../support/sandbox.js";
import { Terminal } from "../support/terminal.js";

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

describe("brig config set", () => {
  const file = () => join(home, "config.toml");
  const text = () => readFile(file(), "utf8");

  it("changes one value, and leaves comments and all else as they are", async () => {
    const before =
      '# mine\nmodel = "a"   # the usual one\n\n[sandbox_workspace_write]\n# why\nnetwork_access = false\n';
    await writeFile(file(), before, { mode: 0o640 });
    expect(await config("set", "model", "b")).toMatchObject({
      exitCode: 0,
      stdout: `${file()}\n`,
      stderr: "",
    });
    expect((await config("set", "sandbox_workspace_write.network_access", "true")).exitCode).toBe(0);
    expect((await config("set", "sandbox_workspace_write.writable_roots", '["/data"]')).exitCode).toBe(0);
    const changed = await text();
    expect(changed).toMatch(
      /^# mine\nmodel = "b" +# the usual one\n\n\[sandbox_workspace_write\]\n# why\nnetwork_access = true\n/,
    );
    expect(changed).toContain('writable_roots = [ "/data" ]');
    expect((await stat(file())).mode & 0o777).toBe(0o640);
    expect((await config("unset", "sandbox_workspace_write.writable_roots")).exitCode).toBe(0);
    expect((await config("unset", "model")).exitCode).toBe(0);
    const { stdout } = await config("show", "--json");
    expect(JSON.parse(stdout).values).toMatchObject({
      "sandbox_workspace_write.network_access": { value: true, source: { kind: "file" } },
    });
    expect(await text()).not.toContain("model =");
  });

  it("writes nothing that is no configuration", async () => {
    await writeFile(file(), 'model = "a"\n');
    for (const [args, message] of [
      [["set", "modle", "b"], /unknown key `modle`; did you mean `model`/],
      [["set", "sandbox_mode", "everything"], /sandbox_mode/],
      [["set", "model.name", "b"], /`model` is no table/],
      [["set", "a = 1\nb", "c"], /is no key/],
      [["set", "", "c"], /is no key/],
    ] as const) {
      const { exitCode, stderr } = await config(...args);
      expect([exitCode, stderr]).toEqual([2, expect.stringMatching(message)]);
    }
    expect(await text()).toBe('model = "a"\n');
  });

  it("does not shadow the file of Codex, and needs no file of its own before", async () => {
    await mkdir(join(home, "none"));
    await writeFile(join(home, "none/config.toml"), 'model = "a"\n');
    const { exitCode, stderr } = await config("set", "model", "b");
    expect([exitCode, stderr]).toEqual([2, expect.stringMatching(/would ignore all of it[\s\S]*cp /)]);
    await rm(join(home, "none"), { recursive: true });
    expect((await config("unset", "model")).stderr).toContain("brig config init");
    expect((await config("set", "model", "b")).exitCode).toBe(0);
    expect([await text(), (await stat(file())).mode & 0o777]).toEqual(['model = "b"\n', 0o600]);
  });

  it("follows a link, and makes a first file in which nothing is set", async () => {
    const target = join(workspace, "mine.toml");
    expect((await config("init")).stdout).toBe(`${file()}\n`);
    expect(JSON.parse((await config("show", "--json")).stdout).warnings).toEqual([]);
    expect((await config("init")).exitCode).toBe(2);
    // Each line that is commented out is one that works.
    await writeFile(target, (await text()).replaceAll(/^# (?=[a-z_]+ = |\[)/gm, ""));
    await rm(file());
    await symlink(target, file());
    const { stdout } = await config("show", "--json");
    expect(JSON.parse(stdout)).toMatchObject({
      warnings: [],
      values: { container_image: { value: "brig/base" } },
    });
    expect((await config("set", "model", "b")).exitCode).toBe(0);
    expect(await readFile(target, "utf8")).toContain('model = "b"');
    expect((await lstat(file())).isSymbolicLink()).toBe(true);
  });

  it("opens an editor, and says what is wrong afterwards", async () => {
    const editor = join(workspace, "editor");
    await writeFile(editor, '#!/bin/sh\nprintf "modle = 1\\n" > "$2"\n', { mode: 0o755 });
    const terminal = await Terminal.open(["config", "edit"], {
      cwd: workspace,
      env: { ...ofTheTest().env, VISUAL: "", EDITOR: `${editor} --wait` },
    });
    onTestFinished(() => terminal[Symbol.asyncDispose]());
    expect((await terminal.end()).exitStatus).toBe(0);
    expect(terminal.shown).toContain("unknown key `modle`; did you mean `model`?");
    expect((await config("edit")).stderr).toContain("needs a terminal");
  });
});
