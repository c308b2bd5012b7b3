import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import type { BrigOptions } from "../support/cli.js";
import { brigHere } from "../support/cli-here.js";
import { testEngine } from "../support/engine.js";
import { type TemporaryDirectory, temporaryDirectory } from "../support/sandbox.js";
import { Terminal } from "../support/terminal.js";

let folder: TemporaryDirectory;
let home = "";
let workspace = "";
let count = 0;

beforeAll(async () => {
  folder = await temporaryDirectory();
});

afterAll(() => folder[Symbol.asyncDispose]());

beforeEach(async () => {
  home = join(folder.path, `home-${++count}`);
  workspace = join(folder.path, `work-${count}`);
  await mkdir(home);
  await mkdir(join(workspace, "below"), { recursive: true });
  await writeFile(join(workspace, "file"), "the host's\n");
});

const environment = () => ({ BRIG_HOME: home, CODEX_HOME: home, OPENAI_API_KEY: "", OPENAI_BASE_URL: "" });

function run(args: string[], options: BrigOptions = {}) {
  return brigHere(args, { cwd: workspace, ...options, env: { ...environment(), ...options.env } });
}

/** A script that makes one call after the other, and then ends. */
async function play(...calls: object[]): Promise<string> {
  const file = join(folder.path, `play-${count}.yaml`);
  const steps = [...calls.map((call) => ({ calls: [call] })), { text: "done" }];
  await writeFile(file, JSON.stringify({ steps }));
  return file;
}

const shell = (script: string, more: object = {}) => ({
  shell: { command: ["bash", "-c", script], ...more },
});
const escalated = { sandbox_permissions: "require_escalated", justification: "May I?" };

async function expectUntouched(): Promise<void> {
  expect((await readdir(workspace)).toSorted()).toEqual(["below", "file"]);
  expect(await readdir(join(workspace, "below"))).toEqual([]);
  expect(await readFile(join(workspace, "file"), "utf8")).toBe("the host's\n");
  const volumes = await (await testEngine()).listVolumes([`brig.workspace=${workspace}`]);
  expect(volumes).toEqual([]);
}

const change = "echo changed > file; echo new > below/new; cat file below/new";

describe("--workspace overlay", () => {
  it("changes nothing on the host, and leaves no volume: brig exec", async () => {
    const done = await run(["exec", "--workspace", "overlay", "--", "sh", "-c", change]);
    expect(done).toMatchObject({ exitCode: 0, stdout: "changed\nnew\n" });
    expect(done.stderr).toMatch(/^brig: 2 changed paths are not applied yet: .*\n$/);
    await expectUntouched();
  });

  it("takes a directory below another as the workspace", async () => {
    const args = [
      "exec",
      "-C",
      "below",
      "--workspace",
      "overlay",
      "--",
      "sh",
      "-c",
      "pwd; echo x > y; ls; ls ..",
    ];
    const done = await run(args);
    expect(done.stdout).toBe(`${join(workspace, "below")}\ny\nbelow\n`);
    await expectUntouched();
  });

  it("changes nothing on the host: brig tool", async () => {
    const call = JSON.stringify({ command: ["sh", "-c", change] });
    const done = await run(["tool", "--workspace", "overlay", "shell", call]);
    expect(done.stdout).toContain("changed\\nnew");
    await expectUntouched();
  });

  it("is remembered from call to call of brig run, and may be the configuration's", async () => {
    await writeFile(join(home, "config.toml"), 'workspace_kind = "overlay"\n');
    const file = await play(shell(change), shell("cat file"));
    const done = await run(["run", "--script", file, "go"]);
    expect(done.exitCode).toBe(0);
    expect(done.stderr.match(/changed/g)?.length).toBeGreaterThanOrEqual(2);
    await expectUntouched();
    const shown = await run(["config", "show"]);
    expect(shown.stdout).toMatch(/workspace_kind.*overlay/);
    const bound = await run(["run", "--workspace", "bind", "--script", file, "go"]);
    expect(bound.exitCode).toBe(0);
    expect(await readFile(join(workspace, "file"), "utf8")).toBe("changed\n");
  });

  it("is what an approved command outside the sandbox works on, too", async () => {
    const file = await play(
      shell("echo first > own"),
      shell("cat own; echo second > file", escalated),
      shell("cat file"),
    );
    const terminal = await Terminal.open(
      ["run", "--workspace", "overlay", "-a", "on-request", "--script", file, "go"],
      { cwd: workspace, env: environment() },
    );
    onTestFinished(() => terminal[Symbol.asyncDispose]());
    await terminal.waitFor(/Answer \(Enter is no\): $/);
    terminal.type("y");
    expect((await terminal.end()).exitStatus).toBe(0);
    expect(terminal.shown).toContain("first");
    expect(terminal.shown).toContain("second");
    await expectUntouched();
  });

  it("is refused by brig replay, which has a copy already", async () => {
    const done = await run(["replay", "--workspace", "overlay", "-C", workspace, "nothing"]);
    expect(done).toMatchObject({ exitCode: 2, stderr: expect.stringContaining("works on a copy") });
  });

  it("is refused with a path that an overlay cannot have", async () => {
    const odd = join(workspace, "a:b");
    await mkdir(odd);
    const done = await run(["exec", "-C", odd, "--workspace", "overlay", "--", "true"]);
    expect(done.exitCode).toBe(125);
    expect(done.stderr).toMatch(
      /its path contains ":".*\nhint: rename the directory, or use --workspace bind\n$/,
    );
  });
});
