import { cp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { packageRoot } from "../../src/package-root.js";
import { brig, containersOf } from "../support/cli.js";
import { brigHere } from "../support/cli-here.js";
import { type TemporaryDirectory, temporaryDirectory } from "../support/sandbox.js";

let folder: TemporaryDirectory;

beforeAll(async () => {
  folder = await temporaryDirectory();
});

afterAll(() => folder[Symbol.asyncDispose]());

const ofTheTest = () => ({ cwd: folder.path, env: { BRIG_HOME: join(folder.path, "home") } });
const audit = (...args: string[]) => brigHere(["batch", "audit", ...args], ofTheTest());

/** The example messy-csv with other tests. */
async function taskWith(name: string, script: string): Promise<string> {
  const directory = join(folder.path, name);
  await cp(join(packageRoot, "examples/tasks/messy-csv"), directory, { recursive: true });
  const file = join(directory, "task.toml");
  await writeFile(file, (await readFile(file, "utf8")).replace("brig/messy-csv", `test/${name}`));
  await writeFile(join(directory, "tests/test.sh"), script);
  return directory;
}

describe("brig batch audit", () => {
  it("finds an example sound, and names attacks that are not possible there", async () => {
    const task = join(packageRoot, "examples/tasks/messy-csv");
    const { stdout, stderr, exitCode } = await audit(
      task,
      "--attack",
      "reward-file",
      "--attack",
      "git-future",
    );
    expect(stdout).toBe(
      "brig/messy-csv: sound: nothing scores 0, the solution scores 1, 1 attack scores 0, 0 more than nothing, 1 not possible here\n",
    );
    expect(stderr).toContain("brig/messy-csv cheat:git-future: not possible here (");
    expect(exitCode).toBe(0);
  });

  it("names attacks that succeed, and says what to change", async () => {
    // Whatever is there counts, as in a grader that does not look at what it is given.
    const script = "#!/bin/sh\n[ -e /app/clean.csv ] && r=1 || r=0\necho $r > /logs/verifier/reward.txt\n";
    const task = await taskWith("believing", script);
    const attacks = ["--attack", "artifact-names", "--attack", "reward-file"];
    const shown = await audit(task, ...attacks);
    expect(shown.exitCode).toBe(1);
    expect(shown.stdout).toMatch(
      /^test\/believing: NOT SOUND: nothing scores 0, the solution scores 1, 1 attack/,
    );
    expect(shown.stdout).toContain(
      "\n  artifact-names scores 1. Hands in names with line breaks, control sequences and steps upwards.\n    read an",
    );
  });

  it("leaves no container after SIGINT", async () => {
    const messy = join(packageRoot, "examples/tasks/messy-csv");
    const child = brig(["batch", "audit", messy, "-n", "2"], ofTheTest());
    createInterface({ input: child.stderr }).once("line", () => child.kill("SIGINT"));
    expect((await child).exitCode).toBe(130);
    expect(await containersOf(child.pid)).toEqual([]);
  });

  it("refuses an attack that there is not, and lists those that there are", async () => {
    const task = join(packageRoot, "examples/tasks/messy-csv");
    expect(await audit()).toMatchObject({ exitCode: 2 });
    const refused = await audit(task, "--attack", "nosuch*");
    expect(refused).toMatchObject({ exitCode: 2 });
    expect(refused.stderr).toContain('there is no attack "nosuch*"');
    const listed = await audit("--list", "--json", "--attack", "trojan-c*");
    expect(JSON.parse(listed.stdout)).toMatchObject([{ name: "trojan-curl" }, { name: "trojan-cat" }]);
  });
});
