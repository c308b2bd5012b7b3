import { spawnSync } from "node:child_process";
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { beforeEach, expect, it } from "vitest";

const scripts = fileURLToPath(new URL("../../../scripts", import.meta.url));

let checkout: string;

beforeEach(async () => {
  checkout = await mkdtemp(join(tmpdir(), "brig-test-"));
  for (const name of ["install-test-programs.mjs", "test-programs", "setup"])
    await cp(join(scripts, name), join(checkout, "scripts", name), { recursive: true });
  await writeFile(join(checkout, "package.json"), '{ "type": "module" }');
  return () => rm(checkout, { recursive: true });
});

/** An npm that takes a moment, and notes what it has to install. */
async function givenNpm(does = 'mkdir -p "$3/node_modules/.bin"; touch "$3/node_modules/.bin/gemini"') {
  const npm = join(checkout, "npm");
  await writeFile(npm, `#!/bin/sh\nsleep 0.3\necho "$1 $*" >> ${checkout}/calls\n${does}\n`);
  await chmod(npm, 0o755);
}

const install = (names: string[], env: Record<string, string> = {}) =>
  execa(process.execPath, [join(checkout, "scripts/install-test-programs.mjs"), ...names], {
    reject: false,
    env: {
      ...{
        PATH: `${checkout}${delimiter}${process.env.PATH}`,
        BRIG_NO_INSTALL: "",
        BRIG_TEST_ALL_AGENTS: "",
      },
      ...env,
    },
  });

const calls = async () =>
  (await readFile(join(checkout, "calls"), "utf8").catch(() => "")).split("\n").length - 1;
const installed = () => readdir(join(checkout, ".bench")).catch(() => []);

it("a program is installed once, whoever asks for it at once", async () => {
  await givenNpm();
  const ends = await Promise.all([1, 2, 3].map(() => install(["gemini-cli"])));
  expect(ends.map(({ exitCode }) => exitCode)).toEqual([0, 0, 0]);
  expect(await calls()).toBe(1);
  expect(await installed()).toEqual(["gemini-cli-0.61.0"]);
});

it("one that cannot be installed leaves nothing behind, and is tried again", async () => {
  await givenNpm('mkdir "$3/node_modules"; exit 1');
  const { exitCode, stderr } = await install(["gemini-cli"]);
  expect(exitCode).toBe(1);
  expect(stderr).toContain("gemini-cli cannot be installed: the tests that need it are skipped");
  expect(await installed()).toEqual([]);
  await givenNpm();
  expect((await install(["gemini-cli"])).exitCode).toBe(0);
});

it("a process that ended while it installed holds up nobody", async () => {
  await givenNpm();
  await mkdir(join(checkout, ".bench"));
  const { pid } = spawnSync("true");
  await writeFile(join(checkout, ".bench/.installing-gemini-cli"), String(pid));
  expect((await install(["gemini-cli"])).exitCode).toBe(0);
  expect(await installed()).toEqual(["gemini-cli-0.61.0"]);
});

it("nothing is installed where that is forbidden, and what there is not is named", async () => {
  await givenNpm();
  expect((await install(["gemini-cli"], { BRIG_NO_INSTALL: "1" })).exitCode).toBe(1);
  const { exitCode, stderr } = await install(["gemini"]);
  expect({ exitCode, stderr }).toEqual({
    exitCode: 2,
    stderr: expect.stringMatching(/^there is no gemini; /),
  });
  expect(await calls()).toBe(0);
});
