import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";

const root = fileURLToPath(new URL("../../..", import.meta.url));

const source = "export function f(a) {\n  b();\n  if (a) {\n    c();\n  }\n}\n";

/** A small project with these scripts, in which it is known what three tests execute. */
const project: Record<string, string> = {
  "src/a.ts": source,
  "src/a.js.ts": "",
  "docs/page.md": "text",
  "examples/shown/file.txt": "text",
  "sandbox-policies/mode.toml": "x = 1",
  "test/support/shared.ts": 'import "./deeper.js";\n',
  "test/support/deeper.ts": "",
  "test/fixtures/tool.sh": "",
  "test/docker/always.test.ts": 'import { f } from "../../src/a.js";\nit(promised("kept", "x"), f);\n',
  "test/docker/first.test.ts": 'import "../support/shared.js";\n',
  "test/e2e/second.test.ts": 'const name = "tool.sh";\nconst other = "examples/shown";\n',
  "test/e2e/third.test.ts": "",
  "test/e2e/api-report.test.ts": "",
  "test/unit/u.test.ts": "",
  "test/isolation/none.txt": "",
  "other.txt": "",
};

/** `b();` is executed by the first and the second test, `c();` by the second only. The third has not passed. */
const note = `
import { contentKey, ExecutedTests } from "./scripts/executed/executed-tests.js";
import { readFileSync } from "node:fs";
const text = (file) => readFileSync(file, "utf8");
const tests = {};
for (const [file, passed] of [["docker/always", true], ["docker/first", true], ["e2e/second", true], ["e2e/third", false], ["e2e/api-report", true]])
  tests["test/" + file + ".test.ts"] = { content: contentKey(text("test/" + file + ".test.ts")), seconds: 1, passed };
const first = "test/docker/first.test.ts", second = "test/e2e/second.test.ts";
const places = [[first, second], [first, second], [second]];
const files = { "src/a.ts": { content: contentKey(text("src/a.ts")), places, loaded: [] } };
await new ExecutedTests({ commit: process.argv[1], tests, files }).write();
`;

let place: string;
let commit: string;

async function write(files: Record<string, string>): Promise<void> {
  for (const [file, text] of Object.entries(files)) {
    await mkdir(join(place, dirname(file)), { recursive: true });
    await writeFile(join(place, file), text);
  }
}

const git = (...argv: string[]) =>
  execa("git", ["-c", "user.name=t", "-c", "user.email=t@localhost", ...argv], { cwd: place });

beforeAll(async () => {
  place = await mkdtemp(join(tmpdir(), "brig-selection-"));
  for (const folder of ["executed", "gate", "setup", "mutate"])
    await cp(join(root, "scripts", folder), join(place, "scripts", folder), { recursive: true });
  for (const file of ["doors.js", "gate.mjs"])
    await cp(join(root, "scripts", file), join(place, "scripts", file));
  await symlink(join(root, "node_modules"), join(place, "node_modules"));
  await write({ ...project, ".gitignore": "node_modules\n", "package.json": '{"type":"module"}' });
  await git("init", "-q");
  await git("add", "-A");
  await git("commit", "-qm", "one");
  commit = (await git("rev-parse", "HEAD")).stdout;
  await execa("node", ["--input-type=module", "-e", note, commit], { cwd: place });
  await write({ ".ci/base": commit });
  await git("add", "-A");
  await git("commit", "-qm", "two");
});

afterAll(() => rm(place, { recursive: true }));

/** What the check would run after this change, and what it prints of it. */
async function selected(change: Record<string, string | null>, argv: string[] = []) {
  onTestFinished(async () => {
    await git("reset", "-q", "--hard");
    await git("clean", "-qfd");
  });
  for (const [file, text] of Object.entries(change))
    if (text === null) await rm(join(place, file));
    else await write({ [file]: text });
  await git("add", "-A");
  const { stdout } = await execa("node", ["scripts/gate.mjs", "--list", ...argv], { cwd: place });
  const found = ["always", "first", "second", "third"].filter((name) =>
    new RegExp(`[(, ](?:docker|e2e)/${name}[,)]`).test(stdout),
  );
  return { found, stdout };
}

describe("a check runs the tests that prove a promise, and", () => {
  it.for<[string, Record<string, string | null>, string[]]>([
    ["no others if nothing has changed", {}, []],
    [
      "those that execute a line that has changed",
      { "src/a.ts": source.replace("c()", "d()") },
      ["second", "third"],
    ],
    ["all that execute it", { "src/a.ts": source.replace("b()", "d()") }, ["first", "second", "third"]],
    ["none but those known in part after a comment", { "src/a.ts": `// new\n${source}` }, ["third"]],
    ["all that execute a file that is gone", { "src/a.ts": null }, ["first", "second", "third"]],
    [
      "those that execute a line that has changed in a file that has moved",
      { "src/a.ts": null, "src/part/a.ts": source.replace("c()", "d()") },
      ["second", "third"],
    ],
    ["a test that has changed", { "test/e2e/second.test.ts": "// other" }, ["second"]],
    ["who loads what has changed of the tests' own", { "test/support/deeper.ts": "1;" }, ["first"]],
    ["who names a program that has changed", { "test/fixtures/tool.sh": "true" }, ["second"]],
    ["who names the folder of an example", { "examples/shown/file.txt": "other" }, ["second"]],
    [
      "all after a change of a policy",
      { "sandbox-policies/mode.toml": "x = 2" },
      ["first", "second", "third"],
    ],
    ["no others after a change of unit tests", { "test/unit/u.test.ts": "1;" }, []],
  ])("%s", async ([, change, expected]) => {
    expect((await selected(change)).found).toEqual(["always", ...expected]);
  });

  it("the one that compares the public API after a change of a source, although it executes no line of it", async () => {
    expect((await selected({ "src/a.ts": `// new\n${source}` })).stdout).toContain("api-report");
  });

  it("not that one if no source has changed", async () => {
    expect((await selected({ "test/support/deeper.ts": "1;" })).stdout).not.toContain("api-report");
  });

  it("says which files no test uses", async () => {
    const { stdout } = await selected({ "other.txt": "new" });
    expect(stdout).toMatch(/^used by no test .*: 1 file \(other\.txt\)$/m);
  });

  it.for([
    ["src/sandbox/docker/new.ts", /^parts: gvisor, docker-26, podman-1$/m],
    ["images/toolbox/new.c", /^parts: .*sanitized/m],
    ["docs/page.md", /^parts: none/m],
  ] as const)("the parts that %s concerns", async ([file, line]) => {
    expect((await selected({ [file]: "" })).stdout).toMatch(line);
  });

  it("all tests if it is not known what the change begins at", async () => {
    const { found, stdout } = await selected({}, ["--base", "0".repeat(40)]);
    expect(found).toEqual(["always", "first", "second", "third"]);
    expect(stdout).toMatch(/not in this clone/);
  });

  it("the same tests when it is asked again, in at most a dozen lines", async () => {
    const change = { "src/a.ts": source.replace("c()", "d()"), "test/fixtures/tool.sh": "true" };
    const once = await selected(change);
    expect((await selected(change)).stdout).toBe(once.stdout);
    expect(once.stdout.split("\n").length).toBeLessThanOrEqual(12);
  });
});
