import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";

const root = fileURLToPath(new URL("../../..", import.meta.url));

const failing = `
import { beforeAll, describe, expect, it } from "vitest";
const lines = Array.from({ length: 40 }, (_, index) => "\\u001b]0;title\\u0007\\u001b[31mline " + index);
describe("a group (it's 1+1)", () => {
  it("fails for $5,\\nreally", () => { throw new Error(lines.join("\\n")); });
  it("fails for $5,\\nreally not", () => {});
});
it("is random", () => expect(1, "seed 77").toBe(2));
describe("a group that does not start", () => {
  beforeAll(() => { throw new Error("no start"); });
  it("is not reached", () => {});
});`;

const skipping = `
import { describe, it } from "vitest";
it.skip("needs a server [redis-server is not installed; apt-get install redis-server]", () => {});
describe.skip("on a server [redis-server is not installed; apt-get install redis-server]", () => {
  it("is [fast]er", () => {});
});
it.skip("is kept [not on Podman: it has none] [kept.output]", () => {});
it("looks first", ({ skip }) => skip("only root can"));
it.skip("says nothing", () => {});
it("passes", () => {});`;

const tests = {
  "failing.test.js": failing,
  "skipping.test.js": skipping,
  "unloadable.test.js": 'import "./missing.js";',
  "outside.test.js": `
import { it } from "vitest";
it("passes", async () => {
  setTimeout(() => { throw new Error("nobody waits for this"); });
  await new Promise((resolve) => setTimeout(resolve, 100));
});`,
  "passing.test.js": 'import { it } from "vitest";\nit("passes", () => {});',
  "vitest.config.mjs": 'export default { test: { projects: [{ extends: true, test: { name: "one" } }] } };',
};

let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "brig-test-"));
  for (const [name, text] of Object.entries(tests)) await writeFile(join(directory, name), text);
  return () => rm(directory, { recursive: true });
});

const program = [process.execPath, join(root, "node_modules/vitest/vitest.mjs")] as const;
const reporters = ["--no-color", "--reporter=default", `--reporter=${join(root, "test/reporter.mjs")}`];

/** What comes after vitest's own summary. */
async function endOf(...files: string[]): Promise<string> {
  const [node, vitest] = program;
  const argv = [vitest, "run", "--config", "vitest.config.mjs", ...reporters, ...files];
  const { stdout } = await execa(node, argv, { cwd: directory, reject: false });
  return stdout.split(/ Duration .*\n/)[1] ?? "";
}

describe("the end of a run", () => {
  let end: string;
  beforeAll(async () => {
    end = await endOf();
  });

  it("has the beginning of each message, and the command that runs the test alone", async () => {
    expect(end).toContain(`
one failing.test.js > a group (it's 1+1) > fails for $5, really
  line 0
  line 1
`);
    expect(end).toMatch(/ line 14\n {2}\(25 more lines\)\n {2}npx vitest run --config vitest\.config\.mjs /);
    const [, command = ""] = /\n {2}npx (vitest run .* -t '\^a group .*)\n/.exec(end) ?? [];
    onTestFinished(() => rm(join(directory, "results.json")));
    await execa(
      "/bin/sh",
      [
        "-c",
        `"$0" ${command.replace("vitest", program[1])} --reporter=json --outputFile=results.json`,
        program[0],
      ],
      { cwd: directory, reject: false },
    );
    const { numFailedTests, numPassedTests } = await import(join(directory, "results.json"), {
      with: { type: "json" },
    }).then(({ default: results }) => results);
    expect({ numFailedTests, numPassedTests }).toEqual({ numFailedTests: 1, numPassedTests: 0 });
  });

  it("repeats the seed that a failure names", () => {
    expect(end).toContain(
      "\n  BRIG_TEST_SEED=77 npx vitest run --config vitest.config.mjs --project one failing.test.js",
    );
  });

  it("has files that cannot be loaded, groups that do not start, and errors outside of tests", () => {
    expect(end).toMatch(/\none unloadable\.test\.js\n {2}Cannot find .*missing\.js/);
    expect(end).toContain("\none failing.test.js > a group that does not start\n  no start\n");
    expect(end).toContain(
      "\nan error outside of tests, while outside.test.js ran\n  nobody waits for this\n",
    );
  });

  it("counts the skipped tests by reason, and none that a failure has kept from running", () => {
    const [, skipped] = end.split("\nSkipped:\n");
    expect(skipped?.split("\n")).toEqual([
      "  2 tests: redis-server is not installed; apt-get install redis-server",
      "  1 test: not on Podman: it has none",
      "  1 test: only root can",
      "  1 test: no reason in skipping.test.js",
    ]);
  });

  it("has no control sequences of a message", () => {
    expect(end.replaceAll("\n", "")).not.toMatch(/\p{Cc}/u);
  });
});

it("a run in which all tests pass has nothing to add", async () => {
  expect((await endOf("passing.test.js")).trim()).toBe("");
});
