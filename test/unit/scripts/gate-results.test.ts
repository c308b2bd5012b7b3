import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { describe, expect, it, onTestFinished } from "vitest";

const script = fileURLToPath(new URL("../../../.ci/results.mjs", import.meta.url));

type Run = Record<
  string,
  Record<string, "passed" | "failed" | "skipped"> | "not-loaded" | "hook-failed"
> | null;

interface FileResult {
  name: string;
  status: string;
  message?: string;
  assertionResults: { fullName: string; status: string; failureMessages: string[] }[];
}

/** A run as vitest writes it; null is one that wrote nothing. */
function report(run: Run): string {
  if (run === null) return "";
  const testResults = Object.entries(run).map(([name, tests]): FileResult => {
    if (tests === "not-loaded")
      return { name, status: "failed", message: "cannot load", assertionResults: [] };
    if (tests === "hook-failed") {
      const assertionResults = [{ fullName: "one", status: "passed", failureMessages: [] }];
      return { name, status: "failed", message: "clean-up broke", assertionResults };
    }
    const assertionResults = Object.entries(tests).map(([fullName, status]) => ({
      fullName,
      status,
      failureMessages: status === "failed" ? [`${fullName} broke`] : [],
    }));
    const fails = Object.values(tests).includes("failed");
    return { name, status: fails ? "failed" : "passed", assertionResults };
  });
  const passed = testResults
    .flatMap((file) => file.assertionResults)
    .filter((one) => one.status === "passed");
  const success = testResults.every(({ status }) => status === "passed");
  return JSON.stringify({ success, numPassedTests: passed.length, testResults });
}

interface Given {
  steps?: number;
  /** The second run of the files that failed in the first of the runs. */
  again?: Run;
  runs: Run[];
}

async function summary({ steps = 0, again = null, runs }: Given) {
  const directory = await mkdtemp(join(tmpdir(), "brig-test-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  const written = async (name: string, run: Run) => {
    const file = join(directory, name);
    await writeFile(file, report(run));
    return file;
  };
  const files = await Promise.all(
    runs.map(async (run, index) => {
      const second = await written(`${index}-again.json`, index === 0 ? again : null);
      return `${await written(`${index}.json`, run)}=${second}`;
    }),
  );
  const { stdout, exitCode } = await execa(process.execPath, [script, "summary", `${steps}`, ...files], {
    reject: false,
  });
  return { lines: stdout.split("\n"), exitCode };
}

const failing: Run = { "/a.test.ts": { one: "passed", two: "failed" } };

describe("the gate's last line", () => {
  it.for<[string, Given, string, number]>([
    ["is good when all is well", { runs: [{ "/a": { one: "passed" } }, null] }, "1 passed, 0 failed", 0],
    ["counts a test that fails", { steps: 1, runs: [failing] }, "1 passed, 1 failed", 1],
    ["counts a step that fails with all tests passed", { steps: 1, runs: [{}] }, "0 passed, 1 failed", 1],
    [
      "counts a file that cannot be loaded",
      { steps: 1, runs: [{ "/a": "not-loaded" }] },
      "0 passed, 1 failed",
      1,
    ],
    [
      "counts a test that fails when it runs again",
      { steps: 1, runs: [failing], again: failing },
      "1 passed, 1 failed",
      1,
    ],
    [
      "counts a test whose file cannot be loaded when it runs again",
      { steps: 1, runs: [failing], again: { "/a.test.ts": "not-loaded" } },
      "1 passed, 1 failed",
      1,
    ],
    [
      "counts a test that did not run again, though others did",
      { steps: 1, runs: [failing], again: { "/b.test.ts": { two: "passed" } } },
      "1 passed, 1 failed",
      1,
    ],
    [
      "counts a test that is left out when its file runs again",
      { steps: 1, runs: [failing], again: { "/a.test.ts": { one: "passed", two: "skipped" } } },
      "1 passed, 1 failed",
      1,
    ],
    [
      "counts only the file that fails again, not one beside it that passes then",
      {
        steps: 1,
        runs: [{ ...failing, "/b.test.ts": { three: "failed" }, "/c.test.ts": "hook-failed" }],
        again: {
          "/a.test.ts": { one: "passed", two: "passed" },
          "/b.test.ts": { three: "failed" },
          "/c.test.ts": "hook-failed",
        },
      },
      "3 passed, 2 failed",
      1,
    ],
    [
      "counts a test that passes again in a file of which another one fails then",
      { steps: 1, runs: [failing], again: { "/a.test.ts": { one: "failed", two: "passed" } } },
      "1 passed, 1 failed",
      1,
    ],
    [
      "counts a test that passes again in a file whose clean-up fails then",
      { steps: 1, runs: [{ "/a.test.ts": { one: "failed" } }], again: { "/a.test.ts": "hook-failed" } },
      "0 passed, 1 failed",
      1,
    ],
    [
      "counts a test that passed again only after another run",
      {
        steps: 2,
        runs: [failing, { "/a.test.ts": { two: "failed" } }],
        again: { "/a.test.ts": { one: "passed", two: "passed" } },
      },
      "2 passed, 1 failed",
      1,
    ],
    [
      "counts a test that is not among those of its file any more",
      { steps: 1, runs: [failing], again: { "/a.test.ts": { one: "passed" } } },
      "1 passed, 1 failed",
      1,
    ],
  ])("%s", async ([, given, last, status]) => {
    const { lines, exitCode } = await summary(given);
    expect([lines.at(-1), exitCode]).toEqual([last, status]);
  });

  it("names what failed, with its message, and what failed only at first", async () => {
    const { lines: failed } = await summary({ steps: 1, runs: [failing] });
    expect(failed).toEqual([
      "failed: /a.test.ts: two",
      "two broke",
      expect.stringMatching(/^ {2}alone: npx vitest run .* (?:\.\.\/)+a\.test\.ts -t 'two'$/),
      "1 passed, 1 failed",
    ]);
    const again: Run = { "/a.test.ts": { one: "passed", two: "passed" } };
    const { lines, exitCode } = await summary({ steps: 1, runs: [failing], again });
    expect(lines).toEqual([
      "unsteady, passed when it ran again: /a.test.ts: two",
      "two broke",
      "1 unsteady: failed beside other tests and passed alone. Mend the cause.",
      "2 passed, 0 failed",
    ]);
    expect(exitCode).toBe(0);
  });
});
