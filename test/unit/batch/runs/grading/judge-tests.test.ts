import { expect, it } from "vitest";
import { judgeTests } from "../../../../../src/batch/runs/grading/judge-tests.js";
import type { TestsRun } from "../../../../../src/batch/runs/grading/run-tests.js";

const run: TestsRun = {
  exitCode: 0,
  isTimedOut: false,
  diskExceeded: null,
  output: "= short test summary info =\nPASSED test_sum.py::test_sum\n",
  isOutputCut: false,
  time: { durationMs: 1, extendedMs: 0, waitedForCpuMs: null },
  period: null,
};
const check = { kind: "parsed-output", directory: null, script: "/tests/run.sh", parser: "pytest" } as const;
const stop = () => Promise.reject(new Error("nothing is read from the container"));

it("output of which something was left out is no grade, since that may name a test that failed", async () => {
  expect(await judgeTests(stop, { check, run, uid: 0 })).toMatchObject({
    verifier: "scored",
    rewards: { reward: 1 },
  });
  expect(await judgeTests(stop, { check, run: { ...run, isOutputCut: true }, uid: 0 })).toMatchObject({
    verifier: "no-reward",
    rewards: null,
    message: "the tests printed more than the 16 MiB that are read, so not all of their results are known",
  });
});
