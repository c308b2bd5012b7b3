import type { TestStatus } from "./found-tests.js";

/** A test as it is reported. One that was expected to fail, and did, has passed. */
export interface GradedTest {
  name: string;
  status: "passed" | "failed" | "skipped" | "error";
}

export type Grade =
  | { kind: "graded"; isResolved: boolean; tests: readonly GradedTest[] }
  | { kind: "invalid"; reason: InvalidReason };

/** Why output says nothing about the tests, with the sentence that people read. */
export const invalidReasons = {
  "no-markers": "the test output does not have both markers, so the tests did not start or did not end",
  "patch-not-applied": "the evaluation script says that a patch could not be applied",
  "reset-failed": "the evaluation script says that the repository could not be reset",
  "tests-errored": "the evaluation script says that the tests could not be run",
  "tests-timed-out": "the evaluation script says that the tests did not end in time",
  "nothing-parsed": "the output names no test, and nothing in it shows that tests ran",
  "unexplained-exit-code": "the tests' command failed although no test failed in its output",
  "too-many-tests": "the output names more tests than any test program has",
} as const;
export type InvalidReason = keyof typeof invalidReasons;

export function gradedTest(name: string, status: TestStatus | undefined): GradedTest {
  if (status === undefined) return { name, status: "failed" };
  return { name, status: status === "xfailed" ? "passed" : status };
}
