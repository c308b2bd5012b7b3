import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
// @ts-expect-error -- a plain script without types
import { TestRuns } from "../../../scripts/mutate/test-runs.js";

/**
 * What comes of a fault with these tests, whose runs end like this one after the other: "passed", "failed" before any test began, "timed-out", or
 * "failed FILE". Also how they were run.
 */
async function outcomeOf(plan: string[], { tests = ["a", "b"], project = "docker" } = {}) {
  const path = await mkdtemp(join(tmpdir(), "brig-test-runs-"));
  onTestFinished(() => rm(path, { recursive: true }));
  const log: string[] = [];
  let hasFault = false;
  const run = async (argv: string[]) => {
    const [outcome = "", failed] = (plan[log.length] ?? "nothing is planned").split(" ");
    log.push(`${hasFault ? "with" : "without"} ${argv.slice(argv.indexOf("--outputFile") + 2)}`);
    const testResults = [{ status: "failed", name: join(path, failed ?? "") }];
    if (failed !== undefined)
      await writeFile(argv[argv.indexOf("--outputFile") + 1] ?? "", JSON.stringify({ testResults }));
    return outcome;
  };
  const runs = new TestRuns(path, { testCount: 8, noted: {}, signal: new AbortController().signal, run });
  const setFault = (value: boolean) => () => {
    hasFault = value;
  };
  const fault = { put: setFault(true), remove: setFault(false) };
  const outcome: string = await runs.outcomeWith(tests, project, fault);
  expect(log).toHaveLength(plan.length);
  return { outcome, log };
}

it.for(["unit", "docker"])(
  "a fault is noticed (%s) if the same test fails with it twice and passes without it",
  async (project) => {
    expect(await outcomeOf(["failed a", "passed", "failed a"], { project })).toEqual({
      outcome: "killed",
      log: ["with a,b", "without a", "with a"],
    });
  },
);

it("a fault is not noticed by what fails only once with it, as on a busy machine", async () => {
  const once = ["failed a", "passed", "passed"];
  // That the test passes without the fault is asked once.
  const further = ["failed a", "passed"];
  expect((await outcomeOf([...once, ...further, ...further])).outcome).toBe("survived");
  expect((await outcomeOf([...once, "passed"])).outcome).toBe("survived");
  expect((await outcomeOf([...once, "failed b", "passed", "failed b"])).outcome).toBe("killed");
});

it("a test that fails without the fault as well is left out, and the others are asked", async () => {
  const { outcome, log } = await outcomeOf([
    "failed a",
    "failed a",
    "failed a",
    "failed b",
    "passed",
    "failed b",
  ]);
  expect(outcome).toBe("killed");
  expect(log).toEqual(["with a,b", "without a", "without a", "with b", "without b", "with b"]);
  expect((await outcomeOf(["failed a", "failed a", "passed", "failed a"])).outcome).toBe("killed");
  const alone = await outcomeOf(["failed a", "failed a", "failed a"], { tests: ["a"] });
  expect(alone.outcome).toBe("untested");
});

it.for(["timed-out", "failed"])(
  "tests that have %s as a whole notice it only if they do so twice, and pass without it",
  async (end) => {
    const { outcome, log } = await outcomeOf([end, "passed", end]);
    expect(outcome).toBe(end === "failed" ? "killed" : end);
    expect(log).toEqual(["with a,b", "without a,b", "with a,b"]);
    expect((await outcomeOf([end, end, end, "passed"])).outcome).toBe("survived");
    expect((await outcomeOf([end, "passed", "passed", "passed"])).outcome).toBe("survived");
  },
);
