import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { expect, it, onTestFinished } from "vitest";

const root = fileURLToPath(new URL("../../..", import.meta.url));

/** A project with two tests: one that calls something itself, and one whose program calls it and is killed. */
const project: Record<string, string> = {
  ".gitignore": "node_modules\n",
  "package.json": '{"type":"module"}',
  "scripts/setup.mjs": "",
  "src/a.ts": "export function one() {\n  return 1;\n}\nexport function two() {\n  return 2;\n}\n",
  "src/program.ts":
    '#!/usr/bin/env node\nimport { two } from "./a.js";\nfunction run(): void {\n  two();\n  console.log("ready");\n  setInterval(() => undefined, 1000);\n}\nrun();\n',
  "test/docker/calls.test.ts":
    'import { expect, it } from "vitest";\nimport { one } from "../../src/a.js";\nit("calls", () => expect(one()).toBe(1));\n',
  "test/docker/starts.test.ts":
    'import { once } from "node:events";\nimport { spawn } from "node:child_process";\nimport { it } from "vitest";\nit("starts", async () => {\n  const child = spawn("node", ["--import", "tsx", "src/program.ts"]);\n  await once(child.stdout, "data");\n  child.kill("SIGKILL");\n});\n',
  "test/vitest.config.ts":
    'export default { root: new URL("..", import.meta.url).pathname, test: { projects: [{ extends: true, test: { name: "docker", include: ["test/docker/*.test.ts"] } }] } };\n',
};

const record = `
import { recordExecuted } from "./scripts/executed/record.js";
const tests = ["test/docker/calls.test.ts", "test/docker/starts.test.ts"];
const { signal } = new AbortController();
process.stdout.write(JSON.stringify(await recordExecuted({ projects: ["docker"], tests, sides: 1, signal })));
`;

it("what a test executes is noted, also what a program that it kills has executed", async () => {
  const place = await mkdtemp(join(tmpdir(), "brig-record-"));
  onTestFinished(() => rm(place, { recursive: true }));
  for (const name of ["executed", "mutate", "setup"])
    await cp(join(root, "scripts", name), join(place, "scripts", name), { recursive: true });
  for (const [file, text] of Object.entries(project)) {
    await mkdir(join(place, dirname(file)), { recursive: true });
    await writeFile(join(place, file), text);
  }
  await symlink(join(root, "node_modules"), join(place, "node_modules"));
  const git = (...argv: string[]) =>
    execa("git", ["-c", "user.name=t", "-c", "user.email=t@localhost", ...argv], { cwd: place });
  await git("init", "-q");
  await git("add", "-A");
  await git("commit", "-qm", "one");
  const { stdout } = await execa("node", ["--input-type=module", "-e", record], { cwd: place });
  const { tests, files, commit } = JSON.parse(stdout);
  expect(commit).toBe((await git("rev-parse", "HEAD")).stdout);
  expect(tests).toMatchObject({
    "test/docker/calls.test.ts": { passed: true },
    "test/docker/starts.test.ts": { passed: true },
  });
  expect(files["src/a.ts"].places).toEqual([["test/docker/calls.test.ts"], ["test/docker/starts.test.ts"]]);
  expect(files["src/program.ts"].places.slice(0, 2)).toEqual(Array(2).fill(["test/docker/starts.test.ts"]));
});
