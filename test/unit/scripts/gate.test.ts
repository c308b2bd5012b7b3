import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { expect, it, onTestFinished } from "vitest";

const root = fileURLToPath(new URL("../../..", import.meta.url));

const passes = 'import { it } from "vitest";\nit("passes", () => {});\n';
const fails = 'import { it } from "vitest";\nit("fails", () => { throw new Error("broken"); });\n';
/** Passes when it runs for the second time. */
const passesLater =
  'import { existsSync, writeFileSync } from "node:fs";\nimport { it } from "vitest";\nit("passes later", () => {\n  if (existsSync("ran")) return;\n  writeFileSync("ran", "");\n  throw new Error("disturbed");\n});\n';

const projects = ["unit", "tools", "docker", "e2e", "slow", "deep"];
const config = `export default { root: new URL("..", import.meta.url).pathname, test: { projects: ${JSON.stringify(
  projects.map((name) => ({ extends: true, test: { name, include: [`test/${name}/*.test.ts`] } })),
)} } };\n`;

/** What the check of a small project with these files prints, in which all tests are new. */
async function check(files: Record<string, string>, scripts: Record<string, string> = {}) {
  const place = await mkdtemp(join(tmpdir(), "brig-gate-"));
  onTestFinished(() => rm(place, { recursive: true }));
  for (const name of ["executed", "gate", "mutate", "setup"])
    await cp(join(root, "scripts", name), join(place, "scripts", name), { recursive: true });
  for (const name of [
    "scripts/gate.mjs",
    "scripts/doors.js",
    ".ci/results.mjs",
    ".ci/still-running.mjs",
    "test/reporter.mjs",
  ]) {
    await mkdir(join(place, dirname(name)), { recursive: true });
    await cp(join(root, name), join(place, name));
  }
  const all: Record<string, string> = {
    "package.json": JSON.stringify({ type: "module", scripts: { check: "true", demo: "true", ...scripts } }),
    "test/vitest.config.ts": config,
    "test/docker/none.txt": "",
    "test/isolation/none.txt": "",
    "test/e2e/one.test.ts": passes,
    ".gitignore": "node_modules\n",
    ...files,
  };
  for (const [file, text] of Object.entries(all)) {
    await mkdir(join(place, dirname(file)), { recursive: true });
    await writeFile(join(place, file), text);
  }
  await symlink(join(root, "node_modules"), join(place, "node_modules"));
  const git = (...argv: string[]) =>
    execa("git", ["-c", "user.name=t", "-c", "user.email=t@localhost", ...argv], { cwd: place });
  await git("init", "-q");
  await git("add", "-A");
  await git("commit", "-qm", "one");
  const { all: printed, exitCode } = await execa("node", ["scripts/gate.mjs", "--base", "HEAD"], {
    cwd: place,
    all: true,
    reject: false,
    env: { NO_COLOR: "1", BRIG_CHECK_MINUTES: undefined, BRIG_TESTS_END_AT: undefined },
  });
  const lines = printed.split("\n");
  return { exitCode, printed, last: lines.at(-1) };
}

it("a check passes if everything does, and counts the tests of all its runs", async () => {
  const { exitCode, last, printed } = await check({
    "test/unit/a.test.ts": passes,
    "test/docker/a.test.ts": passes,
  });
  expect({ exitCode, last }).toEqual({ exitCode: 0, last: "3 passed, 0 failed" });
  expect(printed).toMatch(/^== done in \d+ s: npm run check$/m);
  expect(printed).toMatch(/^2 of 2 test files with containers or whole programs run$/m);
});

it("a check fails with a test, and names it with the command that runs it alone", async () => {
  const { exitCode, last, printed } = await check({
    "test/unit/a.test.ts": passes,
    "test/docker/a.test.ts": fails,
  });
  expect({ exitCode, last }).toEqual({ exitCode: 1, last: "2 passed, 1 failed" });
  expect(printed).toMatch(/^failed: .*\/test\/docker\/a\.test\.ts: fails$/m);
  expect(printed).toMatch(/^ {2}alone: npx vitest run .* test\/docker\/a\.test\.ts -t 'fails'$/m);
});

it("a check counts and names what passes only alone, and does not fail for it", async () => {
  const { exitCode, last, printed } = await check({
    "test/unit/a.test.ts": passes,
    "test/docker/a.test.ts": passesLater,
  });
  expect({ exitCode, last }).toEqual({ exitCode: 0, last: "3 passed, 0 failed" });
  expect(printed).toMatch(/^unsteady, passed when it ran again: .*a\.test\.ts: passes later$/m);
  expect(printed).toMatch(/^1 unsteady: /m);
});

it("a check fails with a step that is no test, and goes on with the others", async () => {
  const scripts = { check: "echo no good; false" };
  const { exitCode, last, printed } = await check({ "test/unit/a.test.ts": passes }, scripts);
  expect({ exitCode, last }).toEqual({ exitCode: 1, last: "2 passed, 1 failed" });
  expect(printed).toMatch(/^== the end of the failed step: npm run check$/m);
  expect(printed.split("no good").length).toBeGreaterThan(2);
});
