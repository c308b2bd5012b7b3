import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { expect, it, onTestFinished } from "vitest";

const root = fileURLToPath(new URL("../../..", import.meta.url));

const tests = {
  "quick.test.js": 'it("is quick", () => {})',
  "endless.test.js": `
    it("has ended", () => {});
    it("never ends", async () => {
      await new Promise((resolve) => setTimeout(resolve, 1000));
      process._rawDebug("worker", process.pid);
      for (;;);
    });`,
};

async function writeTests(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "brig-test-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  for (const [name, text] of Object.entries(tests)) await writeFile(join(directory, name), text);
  return directory;
}

/** A run of tests in another directory, which ends in this time or when all of them have ended. */
async function runTests(directory: string, { endsIn, only = "" }: { endsIn?: number; only?: string }) {
  const { all, exitCode } = await execa(
    process.execPath,
    [
      join(root, "node_modules/vitest/vitest.mjs"),
      ...["run", "--root", directory, "--globals", "--no-color", "--reporter=default"],
      ...[`--reporter=${join(root, ".ci/still-running.mjs")}`, only],
    ],
    {
      cwd: directory,
      reject: false,
      all: true,
      // Empty, because this test may itself be in a run that has such a time.
      env: { BRIG_TESTS_END_AT: endsIn === undefined ? "" : String(Date.now() + endsIn) },
    },
  );
  return { all, exitCode };
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

it("a run that has no time left names what still runs, and ends with its workers", async () => {
  const directory = await writeTests();
  let run = { all: "", exitCode: undefined as number | undefined };
  // A busy machine may need longer until the endless test begins.
  for (let endsIn = 3000; endsIn < 90_000 && !run.all.includes("worker "); endsIn *= 3)
    run = await runTests(directory, { endsIn });
  expect(run.exitCode).toBe(1);
  const [, words = ""] = run.all.split("still running:\n");
  expect(words).toMatch(/ endless\.test\.js, for \d+ s: never ends$/);
  expect(words).not.toContain("quick.test.js");
  const worker = Number(/worker (\d+)/.exec(run.all)?.[1]);
  await expect.poll(() => isRunning(worker)).toBe(false);
});

it("a run that ends before that says nothing, and does not wait", async () => {
  const directory = await writeTests();
  const run = await runTests(directory, { endsIn: 3_600_000, only: "quick" });
  expect(run).toMatchObject({ exitCode: 0, all: expect.not.stringContaining("no time is left") });
});

it("a run without such a time has all the time it needs", async () => {
  const directory = await writeTests();
  const run = await runTests(directory, { only: "quick" });
  expect(run).toMatchObject({ exitCode: 0, all: expect.not.stringContaining("no time is left") });
});
