import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { mkdir, statfs } from "node:fs/promises";
import { join } from "node:path";
import { execa } from "execa";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { brig, containersOf } from "../support/cli.js";
import { brigHere } from "../support/cli-here.js";
import { testEngine } from "../support/engine.js";
import { type TemporaryDirectory, temporaryDirectory } from "../support/sandbox.js";

let folder: TemporaryDirectory;
let cwd = "";
let env: Record<string, string> = {};

beforeEach(async () => {
  folder = await temporaryDirectory();
  cwd = join(folder.path, "work");
  await mkdir(cwd);
  writeFileSync(join(cwd, "file"), "host\n");
  env = { BRIG_HOME: join(folder.path, "home") };
});

afterEach(async () => {
  await folder[Symbol.asyncDispose]();
});

const run = (...args: string[]) => brigHere(args, { cwd, env });

async function change(script: string) {
  const done = await run("exec", "--workspace", "overlay", "--", "sh", "-ec", script);
  expect(done).toMatchObject({ exitCode: 0, stdout: "" });
  return done;
}

describe("changes of a copy-on-write workspace, after its command has ended", () => {
  it("are old garbage from the day that is asked for, and not before", async () => {
    await change("echo agent > file");
    const [kept] = JSON.parse((await run("diff", "--list", "--json")).stdout);
    const old = async (days: string) =>
      JSON.parse((await run("gc", "--dry-run", "--json", "--snapshots", days)).stdout).oldSnapshots;
    expect(await old("1")).toEqual([]);
    expect(await old("0")).toEqual([kept.id]);
    const wrong = await run("gc", "--snapshots", "yesterday");
    expect(wrong).toMatchObject({ exitCode: 2, stderr: expect.stringContaining("a number of days") });
  });

  it("are not applied where there are none", async () => {
    await change("echo agent > file");
    const done = await run("apply", "elsewhere");
    expect(done).toMatchObject({ exitCode: 0, stdout: "" });
    expect(done.stderr).toBe("brig: nothing at these paths differs from your files\n");
  });

  it("are shown as a patch, and brought to the files", async () => {
    const { stderr } = await change("echo agent > file; mkdir new; echo n > new/n");
    expect(stderr).toMatch(/^brig: 3 changed paths are not applied yet: brig diff --id [0-9a-f]{8} /);
    const { stdout: patch } = await brig(["diff"], { cwd, env });
    expect(patch).toContain("--- a/file\n+++ b/file\n@@ -1,1 +1,1 @@\n-host\n+agent\n");
    await execa("git", ["apply", "--check", "-"], { cwd, input: patch });
    expect((await run("diff", "--name-only")).stdout).toBe("modified file\nadded    new\nadded    new/n\n");
    expect((await run("apply", "--dry-run", "new")).stdout).toBe("new\nnew/n\n");
    expect(existsSync(join(cwd, "new"))).toBe(false);
    expect(await run("apply", "new")).toMatchObject({ exitCode: 0, stdout: "new\nnew/n\n" });
    expect(await run("apply")).toMatchObject({
      exitCode: 0,
      stdout: "file\n",
      stderr: `brig: 1 path applied to ${cwd}\n`,
    });
    expect(readFileSync(join(cwd, "file"), "utf8")).toBe("agent\n");
    expect(await run("diff")).toMatchObject({
      stdout: "",
      stderr: "brig: nothing differs from your files\n",
    });
  });

  it("are no changes any more once they were applied, whatever a person makes of them then", async () => {
    await change("echo agent > file; echo n > new; echo x > other");
    expect(await run("apply", "file", "new")).toMatchObject({ exitCode: 0, stdout: "file\nnew\n" });
    writeFileSync(join(cwd, "file"), "person\n");
    expect((await run("diff", "--name-only")).stdout).toBe("added    other\n");
    expect(await run("apply")).toMatchObject({ exitCode: 0, stdout: "other\n" });
    expect(readFileSync(join(cwd, "file"), "utf8")).toBe("person\n");
    expect((await run("diff")).stderr).toBe("brig: nothing differs from your files\n");
  });

  it("are not applied over what a person has changed since", async () => {
    await change("echo agent > file; echo other > other");
    writeFileSync(join(cwd, "file"), "person\n");
    const { exitCode, stdout, stderr } = await run("apply");
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "" });
    expect(stderr).toContain("  file: it was changed on the host meanwhile");
    expect(readdirSync(cwd)).toEqual(["file"]);
    expect(readFileSync(join(cwd, "file"), "utf8")).toBe("person\n");
    expect(await run("apply", "other")).toMatchObject({ exitCode: 0, stdout: "other\n" });
  });

  it("are in JSON for programs", async () => {
    await change("echo agent > file; mkdir -p sub/.git");
    const diff = JSON.parse((await run("diff", "--json")).stdout);
    expect(diff).toMatchObject({ workspace: cwd, count: 3 });
    expect(diff.changes[0]).toMatchObject({ path: "file", change: "modified", isBinary: false });
    const applied = JSON.parse((await run("apply", "--json")).stdout);
    expect(applied).toMatchObject({
      applied: ["file", "sub"],
      skipped: [{ path: "sub/.git" }],
      dryRun: false,
    });
  });

  it("are listed, and found by the beginning of their id", async () => {
    await change("echo 1 > file");
    await change("echo 2 > file");
    const listed: { id: string }[] = JSON.parse((await run("diff", "--list", "--json")).stdout);
    expect(listed).toHaveLength(2);
    const first = listed[1]?.id ?? "";
    expect((await run("diff", "--id", first.slice(0, 8))).stdout).toContain("+1");
    expect((await run("diff")).stdout).toContain("+2");
  });
});

it.each([
  ["no changes were kept here", ["diff"], /no changes of .* were kept/],
  ["an id is unknown", ["apply", "--id", "ffff"], /no changes "ffff" were kept/],
])("says so where %s", async (_name, args, message) => {
  const { exitCode, stderr } = await run(...args);
  expect(exitCode).toBe(2);
  expect(stderr).toMatch(message);
  expect(stderr).toContain("brig diff --list");
});

const GIBIBYTE = 1024 ** 3;
const room = await statfs("/var/lib/docker").then(
  ({ bavail, bsize }) => bavail * bsize,
  () => 0,
);
const hasRoom = room > 24 * GIBIBYTE;
const needsRoom = hasRoom ? "" : " [needs 24 GiB of room in /var/lib/docker]";

it.skipIf(!hasRoom)(
  `a command that makes too much to be kept ends all the same, and leaves nothing on the engine${needsRoom}`,
  async () => {
    const call = brig(["exec", "--workspace", "overlay", "--", "fallocate", "-l", "11G", "giant"], {
      cwd,
      env,
    });
    const { exitCode, stderr } = await call;
    expect(exitCode).toBe(0);
    expect(stderr).toMatch(/have more than 10 GiB.*"giant"/s);
    expect(await containersOf(call.pid)).toEqual([]);
    expect(await (await testEngine()).listVolumes([`brig.workspace=${cwd}`])).toEqual([]);
  },
);

it("nothing is kept of a command that changed nothing", async () => {
  const { stderr } = await change("cat file > /dev/null; touch file");
  expect(stderr).toBe("");
  expect(
    existsSync(join(env.BRIG_HOME ?? "", "snapshots"))
      ? readdirSync(join(env.BRIG_HOME ?? "", "snapshots"))
      : [],
  ).toEqual([]);
});
