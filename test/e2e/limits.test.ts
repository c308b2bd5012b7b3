import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { brig } from "../support/cli.js";
import { brigHere } from "../support/cli-here.js";
import { temporaryDirectory } from "../support/sandbox.js";

async function openPlace() {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory[Symbol.asyncDispose]());
  const [home, workspace] = [join(directory.path, "home"), join(directory.path, "work")];
  await mkdir(workspace);
  const env = { BRIG_HOME: home, CODEX_HOME: home, OPENAI_API_KEY: "", FROM_HERE: "yes" };
  const run = (...args: string[]) => brigHere(args, { env, cwd: workspace });
  return { workspace, env, run };
}

describe("brig exec", () => {
  it("runs with the limits and the variables of its flags, before those of a policy file", async () => {
    const { workspace, run } = await openPlace();
    await writeFile(
      join(workspace, "mine.toml"),
      'extends = "read-only"\n[limits]\nmemoryMb = 1024\npids = 99\n',
    );
    await writeFile(join(workspace, "v.env"), "A=file\nB=file\nFROM_HERE\n");
    const script = "df --block-size=1M --output=size /tmp | tail -n 1; echo $A $B $FROM_HERE";
    const flags = ["--policy", "mine.toml", "--memory", "512m", "--env-file", "v.env", "-e", "A=flag"];
    const ended = await run("exec", ...flags, "--", "sh", "-c", script);
    expect(ended.exitCode, ended.stderr).toBe(0);
    expect(ended.stdout.trim()).toMatch(/^128\nflag file yes$/);
  });

  it("leaves the options of the command to the command", async () => {
    const { workspace, run } = await openPlace();
    await writeFile(join(workspace, "v.env"), "A=of node\n");
    const ended = await run("exec", "node", "--env-file=v.env", "-e", "console.log(process.env.A)");
    expect(ended, ended.stderr).toMatchObject({ exitCode: 0, stdout: "of node\n" });
  });
});

describe("brig ps", () => {
  it("lists what a running command has open, and nothing once it has ended", async () => {
    const { workspace, env, run } = await openPlace();
    const running = brig(["exec", "-s", "read-only", "-i", "--", "cat"], {
      env,
      cwd: workspace,
      holdsInputOpen: true,
    });
    onTestFinished(async () => {
      running.kill("SIGTERM");
      await running;
    });
    const listed = async () => JSON.parse((await run("ps", "--json")).stdout);
    await expect.poll(async () => (await listed()).length, { timeout: 60_000 }).toBe(1);
    expect(await listed()).toEqual([
      {
        name: null,
        id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        state: "running",
        mode: "read-only",
        network: "none",
        image: "brig/base",
        workspace,
        createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
        confirmed: true,
      },
    ]);
    running.kill("SIGTERM");
    await running;
    await expect.poll(listed, { timeout: 60_000 }).toEqual([]);
  });
});
