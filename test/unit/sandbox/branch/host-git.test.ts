import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type GitResult, hostGit, reasonOf, TailBytes } from "../../../../src/sandbox/branch/host-git.js";
import { findGit } from "../../../../src/sandbox/branch/session-branch.js";

let directory = "";

beforeEach(async () => {
  directory = await realpath(await mkdtemp(join(tmpdir(), "brig-host-git-")));
});
afterEach(async () => await rm(directory, { recursive: true }));

/** A program in the place of git, as a shell script. */
async function program(script: string, name = "git"): Promise<string> {
  const path = join(directory, name);
  await writeFile(path, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return path;
}

describe("git on this machine", () => {
  const run = async (script: string, ...given: Parameters<ReturnType<typeof hostGit>["run"]>) =>
    await hostGit("/repo/.git", { program: await program(script) }).run(...given);

  it("is run in no directory of anybody's, for one repository, and without a pager", async () => {
    const { stdout, stderr, exitCode } = await run('pwd; printf "%s\\n" "$@"; echo bad >&2; exit 3', [
      "log",
      "a b",
    ]);
    expect(stdout.toString()).toBe("/\n--git-dir=/repo/.git\n--no-pager\nlog\na b\n");
    expect([stderr, exitCode]).toEqual(["bad\n", 3]);
  });

  it("reads its input to the end, whole or in pieces", async () => {
    expect((await run("cat", [], { input: Buffer.from("whole") })).stdout.toString()).toBe("whole");
    const pieces = (async function* () {
      for (let at = 0; at < 40; at++) yield Buffer.alloc(10_000, "x");
    })();
    expect((await run("cat", [], { input: pieces })).stdout).toHaveLength(400_000);
    expect((await run("cat", [])).stdout).toHaveLength(0);
  });

  it("may end before it has read all of its input", async () => {
    const endless = (async function* () {
      while (true) yield Buffer.alloc(100_000);
    })();
    expect((await run("exit 5", [], { input: endless })).exitCode).toBe(5);
  });

  it("ends if its input cannot be read, and then that is the error", async () => {
    const failing = (async function* () {
      yield Buffer.from("x");
      throw new Error("no more");
    })();
    await expect(run("cat; sleep 600", [], { input: failing })).rejects.toThrow("no more");
  });

  it("has settings and variables of its own, and none of this process", async () => {
    process.env.BRIG_TEST_SECRET = "x";
    const settings = [["hook.a=b.enabled", "false"]] as const;
    const { stdout } = await run("env", [], { settings }).finally(() => delete process.env.BRIG_TEST_SECRET);
    const variables = new Map(
      stdout
        .toString()
        .split("\n")
        .map((line) => line.split(/=(.*)/s) as [string, string]),
    );
    expect(variables.has("BRIG_TEST_SECRET")).toBe(false);
    expect(Object.fromEntries(variables)).toMatchObject({
      ...{ PATH: "/usr/bin:/bin", HOME: "/nonexistent", LC_ALL: "C", GIT_CONFIG_NOSYSTEM: "1" },
      ...{ GIT_CONFIG_SYSTEM: "/dev/null", GIT_CONFIG_GLOBAL: "/dev/null", GIT_ATTR_NOSYSTEM: "1" },
      ...{ GIT_NO_REPLACE_OBJECTS: "1", GIT_NO_LAZY_FETCH: "1", GIT_GRAFT_FILE: "/dev/null" },
      ...{ GIT_ALLOW_PROTOCOL: "", GIT_TERMINAL_PROMPT: "0", GIT_OPTIONAL_LOCKS: "0" },
      ...{ GIT_COMMITTER_NAME: "brig", GIT_COMMITTER_EMAIL: "brig@localhost" },
    });
    const count = Number(variables.get("GIT_CONFIG_COUNT"));
    const set = Array.from({ length: count }, (_, at) => [
      variables.get(`GIT_CONFIG_KEY_${at}`),
      variables.get(`GIT_CONFIG_VALUE_${at}`),
    ]);
    expect(Object.fromEntries(set)).toEqual({
      ...{ "core.hooksPath": "/dev/null", "core.fsmonitor": "false", "core.alternateRefsCommand": "" },
      ...{ "core.logAllRefUpdates": "false", "core.commitGraph": "false", "core.multiPackIndex": "false" },
      ...{ "core.packedGitWindowSize": "32m", "core.packedGitLimit": "256m", "core.bigFileThreshold": "64m" },
      ...{ "pack.threads": "1", "protocol.allow": "never", "gc.auto": "0", "maintenance.auto": "false" },
      ...{ "credential.helper": "", "hook.a=b.enabled": "false" },
    });
  });

  it("may use 2 GiB of memory", async () => {
    expect((await run("ulimit -v", [])).stdout.toString()).toBe(`${2 * 1024 * 1024}\n`);
  });

  it("may not print more than 64 MiB", async () => {
    await expect(run("head -c 67108865 /dev/zero; sleep 600", [])).rejects.toMatchObject({
      code: "branch.refused",
      message: "git printed too much",
      hint: expect.stringContaining("unchanged"),
    });
  });

  it("has the last 16 KiB of what it says kept", async () => {
    const { stderr } = await run("head -c 20000 /dev/zero | tr '\\0' x >&2; echo end >&2", []);
    expect([stderr.length, stderr.endsWith("xend\n")]).toEqual([16 * 1024, true]);
  });

  it("that is not there is refused, and one that a signal has ended has failed", async () => {
    const missing = hostGit("/repo", { program: join(directory, "none") }).run([]);
    await expect(missing).rejects.toMatchObject({
      code: "branch.refused",
      message: "git was not found on this machine",
      hint: expect.stringContaining("PATH"),
    });
    expect((await run("kill -9 $$", [])).exitCode).toBe(128);
  });
});

it.each([
  ["error: one\nhint: two\nfatal: three\nerror: four\n", "error: one; fatal: three"],
  ["first\nsecond\nthird\n", "second; third"],
  ["only\n", "only"],
  ["", "git gave no reason"],
  ["\n\n", "git gave no reason"],
  ['fatal: "\u001b[31m"\n', 'fatal: \\"\\u001b[31m\\"'],
  [`error: ${"x".repeat(600)}`, `error: ${"x".repeat(493)}`],
])("the reason of %j is one line", (stderr, reason) => {
  expect(reasonOf({ stderr } as GitResult)).toBe(reason);
});

it("the last bytes of a stream are kept", () => {
  const tail = new TailBytes(4);
  expect(tail.take()).toBe("");
  for (const piece of ["ab", "cd"]) tail.push(Buffer.from(piece));
  expect(tail.take()).toBe("abcd");
  tail.push(Buffer.from("e"));
  expect(tail.take()).toBe("bcde");
  tail.push(Buffer.from("123456"));
  expect(tail.take()).toBe("3456");
});

describe("git is found", () => {
  it("in the first absolute directory that commands cannot write to, where it can be executed", async () => {
    const [plain, open, linked, good] = ["plain", "open", "linked", "good"].map((name) =>
      join(directory, name),
    ) as [string, string, string, string];
    for (const path of [plain, open, linked, good]) await mkdir(path);
    await writeFile(join(plain, "git"), "", { mode: 0o644 });
    await program("", "open/git");
    await program("", "good/git");
    await symlink(join(open, "git"), join(linked, "git"));
    const path = ["relative", plain, open, linked, good].join(":");
    expect(await findGit(path, [open])).toBe(join(good, "git"));
    expect(await findGit(path, [])).toBe(join(open, "git"));
    await symlink(open, join(directory, "alias"));
    expect(await findGit(`${join(directory, "alias")}:${good}`, [open])).toBe(join(good, "git"));
    expect(await findGit(path, [join(directory, "alias")])).toBe(join(good, "git"));
  });

  it("nowhere, and then that is refused with what to do", async () => {
    await expect(findGit(directory, [])).rejects.toMatchObject({
      code: "branch.refused",
      hint: expect.stringContaining("install git"),
    });
  });
});
