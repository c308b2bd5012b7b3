import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { brig, containersOf } from "../support/cli.js";
import { brigHere } from "../support/cli-here.js";
import { testEngine } from "../support/engine.js";
import { createRepository, git } from "../support/git-repositories.js";
import { temporaryDirectory } from "../support/sandbox.js";

const commit = "git config user.name A; git config user.email a@b; git commit -q --allow-empty -m";

async function start(directory: string, args: string[]) {
  const home = join(directory, "home");
  await mkdir(home, { recursive: true });
  const env = { BRIG_HOME: home, CODEX_HOME: home, OPENAI_API_KEY: "", OPENAI_BASE_URL: "" };
  return await brigHere(args, { cwd: join(directory, "repository"), env });
}

it("exec --git branch says where the commits are, in words and with --json", async () => {
  await using directory = await temporaryDirectory();
  const repository = await createRepository(join(directory.path, "repository"));
  const said = await start(directory.path, ["exec", "--git", "branch", "--", "sh", "-c", `${commit} one`]);
  const branch =
    /^brig: 1 commit arrived as refs\/heads\/(brig\/[0-9a-f-]{36}); look at them with: git log \1\n$/.exec(
      said.stderr,
    )?.[1];
  expect(git(repository, ["log", "--format=%s", `${branch}`])).toBe("one\nwrite first.txt");
  const json = await start(directory.path, [
    "exec",
    "--json",
    "--git",
    "branch",
    "--",
    "sh",
    "-c",
    `${commit} two`,
  ]);
  const { sandbox, receipt } = JSON.parse(json.stdout);
  expect(receipt.branch).toMatchObject({ kind: "arrived", branch: `brig/${sandbox}`, commits: 1 });
  expect(await readdir(join(directory.path, "home", "quarantine"))).toEqual([]);
});

it("exec counts only the files outside the repository as changes that were kept", async () => {
  await using directory = await temporaryDirectory();
  await createRepository(join(directory.path, "repository"));
  const overlay = ["exec", "--workspace", "overlay", "--git", "branch", "--", "sh", "-c"];
  const one = await start(directory.path, [...overlay, `${commit} one`]);
  expect(one.stderr).toMatch(/^brig: 1 commit arrived as [^\n]*\n$/);
  expect(await readdir(join(directory.path, "home", "snapshots"))).toEqual([]);
  const two = await start(directory.path, [...overlay, `echo new > new; ${commit} two`]);
  expect(two.stderr).toMatch(/^brig: 1 changed path is not applied yet/m);
  const shown = await start(directory.path, ["diff", "--name-only"]);
  expect(shown.stdout).toBe("added    new\n");
});

it('a session with git = "branch" brings its commits, and the last event says so', async () => {
  await using directory = await temporaryDirectory();
  const repository = await createRepository(join(directory.path, "repository"));
  const script = join(directory.path, "steps.yaml");
  const steps = [{ calls: [{ shell: { command: ["sh", "-c", `${commit} one`] } }] }, { text: "done" }];
  await writeFile(script, JSON.stringify({ steps }));
  const done = await start(directory.path, ["run", "--json", "-c", 'git="branch"', "--script", script, "go"]);
  const events = done.stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  const { receipt } = events.find(({ type }) => type === "session.receipt");
  expect(receipt.branch).toMatchObject({ kind: "arrived", commits: 1 });
  expect(git(repository, ["log", "--format=%s", receipt.branch.branch])).toBe("one\nwrite first.txt");
});

it.each([["bind"], ["overlay"]])(
  "an interrupted exec brings the commits that were made, says so, and leaves nothing: --workspace %s",
  async (kind) => {
    await using directory = await temporaryDirectory();
    const repository = await createRepository(join(directory.path, "repository"));
    const home = join(directory.path, "home");
    const script = `${commit} one; echo made; sleep 600`;
    const run = brig(["exec", "--workspace", kind, "--git", "branch", "--", "sh", "-c", script], {
      cwd: repository,
      env: { BRIG_HOME: home },
    });
    run.stdout?.once("data", () => run.kill("SIGINT"));
    const { exitCode, stderr } = await run;
    expect(exitCode).toBe(130);
    expect(stderr).toContain("brig: interrupted by SIGINT\n");
    const branch = /^brig: 1 commit arrived as refs\/heads\/(\S+);/m.exec(stderr)?.[1];
    expect(git(repository, ["log", "--format=%s", `${branch}`])).toBe("one\nwrite first.txt");
    expect(await containersOf(run.pid)).toEqual([]);
    expect(await (await testEngine()).listVolumes([`brig.workspace=${repository}`])).toEqual([]);
    expect(await readdir(join(home, "quarantine"))).toEqual([]);
  },
);

it("refuses a directory without a repository, and an access that is not one", async () => {
  await using directory = await temporaryDirectory();
  await mkdir(join(directory.path, "repository"));
  const none = await start(directory.path, ["exec", "--git", "branch", "--", "true"]);
  expect(none.exitCode).toBe(125);
  expect(none.stderr).toMatch(/\.git" does not exist, so there is no repository for a branch/);
  const wrong = await start(directory.path, ["exec", "--git", "everything", "--", "true"]);
  expect(wrong.stderr).toMatch(/"everything" is not a way to use git/);
});
