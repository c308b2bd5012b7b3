import { type Grade, gradedTest } from "./grade.js";
import { parseTestLog, type TestLogParser } from "./parse-test-log.js";

/** Resolved if the output names a test, and all that it names passed. As in Terminal-Bench, skipped ones count as passed. */
export function gradeParsedOutput(output: string, parser: TestLogParser): Grade {
  const parsed = parseTestLog(parser, output);
  if (parsed.kind === "too-many-tests") return { kind: "invalid", reason: parsed.kind };
  if (parsed.statuses.size === 0) return { kind: "invalid", reason: "nothing-parsed" };
  const tests = [...parsed.statuses].map(([name, status]) => gradedTest(name, status));
  const isResolved = tests.every(({ status }) => status === "passed" || status === "skipped");
  return { kind: "graded", isResolved, tests };
}
