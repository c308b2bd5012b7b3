import { mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { brigHere } from "../support/cli-here.js";
import { temporaryDirectory } from "../support/sandbox.js";

let root: string;
let folder: string;
let home: string;

beforeEach(async () => {
  const directory = await temporaryDirectory();
  onTestFinished(async () => await directory[Symbol.asyncDispose]());
  root = directory.path;
  [folder, home] = [join(root, "my app"), join(root, "home")];
  for (const path of [folder, home]) await mkdir(path);
});

async function write(files: Record<string, string>): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), text);
  }
}

const run = (...args: string[]) =>
  brigHere(args, { cwd: folder, env: { BRIG_HOME: home, CODEX_HOME: home, OPENAI_API_KEY: "" } });

async function proposed(files: Record<string, string>) {
  await write(files);
  const ended = await run("init", "--dry-run", "--json");
  expect(ended.exitCode, ended.stderr).toBe(0);
  return JSON.parse(ended.stdout);
}

describe("brig init", () => {
  it.each([
    [
      { "package.json": '{"dependencies": {"x": "1"}}', "package-lock.json": "{}" },
      ["--container-image", "brig/node", "--setup", "npm ci", "--setup-network", "allowlist:@npm"],
    ],
    [{ "package.json": "{}" }, ["--container-image", "brig/node"]],
    [
      { "go.mod": "module x\n", Dockerfile: "FROM scratch\n" },
      ["--container-image", "brig/go", "--setup", "go mod download", "--setup-network", "allowlist:@go"],
    ],
    [
      { "Cargo.toml": "", "Cargo.lock": "" },
      [
        "--container-image",
        "brig/rust",
        "--setup",
        "cargo fetch --locked",
        "--setup-network",
        "allowlist:@crates",
      ],
    ],
    [{ Dockerfile: "FROM scratch\n" }, ["--dockerfile", "Dockerfile"]],
    [{ ".devcontainer/devcontainer.json": "{}", "go.mod": "" }, ["--devcontainer"]],
    [{ "notes.txt": "" }, ["--container-image", "brig/base"]],
  ])("proposes for %j", async (files, options) => {
    const { exec, network, image } = await proposed(files);
    expect(exec).toEqual(["brig", "exec", ...options, "--", "COMMAND"]);
    expect(network.value).toBe("none");
    for (const { reason } of [network, image]) expect(reason).toMatch(/\w{3,} \w+ \w+/);
    expect(await readdir(home)).toEqual([]);
  });

  it("puts the languages of a project together", async () => {
    const { setup, setupNetwork, image } = await proposed({
      "requirements.txt": "x\n",
      "package.json": '{"devDependencies": {"x": "1"}}',
      "yarn.lock": "",
    });
    expect(image).toMatchObject({ value: "brig/node", reason: expect.stringContaining("package.json") });
    expect(setup.value).toContain("yarn install --frozen-lockfile && python3 -m venv .venv");
    expect(setup.reason).toContain("yarn.lock and requirements.txt");
    expect(setupNetwork.value).toBe("allowlist:@npm,@pypi");
  });

  it("writes a profile with a reason above each line, which brig run takes, and never writes it again", async () => {
    await write({
      "package.json": '{"dependencies": {"x": "1"}}',
      "script.yaml": "steps:\n  - text: done\n",
      ".github/workflows/ci.yml":
        "jobs:\n  test:\n    services:\n      db: {}\n    steps:\n      - run: apt-get install x\n",
    });
    const ended = await run("init");
    expect(ended.exitCode, ended.stderr).toBe(0);
    expect(ended.stdout).toContain("brig run -p my-app PROMPT");
    expect(ended.stdout).toContain("ci.yml installs packages of the system");
    expect(ended.stdout).toContain("ci.yml starts services");
    const file = join(home, "my-app.config.toml");
    const text = await readFile(file, "utf8");
    const lines = text.split("\n");
    for (const [index, line] of lines.entries())
      if (/ = /.test(line)) expect(lines[index - 1]).toMatch(/^# \w+/);
    const shown = await run("config", "show", "-p", "my-app", "--json");
    expect(shown.exitCode, shown.stderr).toBe(0);
    expect(shown.stdout).toContain('"brig/node"');
    expect(shown.stdout).toContain('"allowlist:@npm"');
    const again = await run("init");
    expect(again.exitCode).toBe(2);
    expect(again.stderr).toContain("is there already, and stays as it is");
    expect(await readFile(file, "utf8")).toBe(text);
    expect((await run("init", "--name", "other")).exitCode).toBe(0);
    expect((await run("init", "--name", "../x")).exitCode).toBe(2);
  });

  it("follows no link, and takes no word of a file or a name of one", async () => {
    await writeFile(join(root, "package.json"), '{"dependencies": {"x": "1"}}');
    await symlink(join(root, "package.json"), join(folder, "package.json"));
    const hostile = ".github/workflows/$(touch x)\n.yml";
    const { exec, notes } = await proposed({
      [hostile]: "apt-get install x",
      "requirements.txt": "; rm -rf /\n",
    });
    expect(exec.join(" ")).not.toMatch(/npm|rm -rf/);
    expect(notes).toEqual([]);
    const colour = "\u001b[31m";
    const named = join(root, `a${colour}"\n[sandbox]`);
    await mkdir(named);
    const ended = await run("init", "-C", named, "--name", "odd");
    expect(ended.exitCode, ended.stderr).toBe(0);
    expect(ended.stdout).not.toContain(colour);
    expect((await run("config", "show", "-p", "odd")).exitCode).toBe(0);
  });
});
