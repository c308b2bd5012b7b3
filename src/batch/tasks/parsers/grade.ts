import { linesOf, type TestStatus } from "./log-lines.js";
import { parseTestLog, type TestLogParser } from "./parse-test-log.js";

/** A test as it is reported. One that was expected to fail, and did, has passed. */
interface GradedTest {
  name: string;
  status: "passed" | "failed" | "skipped" | "error";
}

type Grade =
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
type InvalidReason = keyof typeof invalidReasons;

function gradedTest(name: string, status: TestStatus | undefined): GradedTest {
  if (status === undefined) return { name, status: "failed" };
  return { name, status: status === "xfailed" ? "passed" : status };
}

/** Resolved if the output names a test, and all that it names passed. As in Terminal-Bench, skipped ones count as passed. */
export function gradeParsedOutput(output: string, parser: TestLogParser): Grade {
  const parsed = parseTestLog(parser, output);
  if (parsed.kind === "too-many-tests") return { kind: "invalid", reason: parsed.kind };
  if (parsed.statuses.size === 0) return { kind: "invalid", reason: "nothing-parsed" };
  const tests = [...parsed.statuses].map(([name, status]) => gradedTest(name, status));
  const isResolved = tests.every(({ status }) => status === "passed" || status === "skipped");
  return { kind: "graded", isResolved, tests };
}

const START = ">>>>> Start Test Output";
const END = ">>>>> End Test Output";

const badCodes: readonly (readonly [string, InvalidReason])[] = [
  [">>>>> Patch Apply Failed", "patch-not-applied"],
  [">>>>> Reset Failed", "reset-failed"],
  [">>>>> Tests Errored", "tests-errored"],
  [">>>>> Tests Timed Out", "tests-timed-out"],
];

/** A summary in which something ran. No count may be 0: a program that lost its browser prints a summary, too. */
const suiteRan =
  /Executed [1-9]\d{0,8} of \d|TOTAL: [1-9]\d{0,8} (?:SUCCESS|FAILED)|[1-9]\d{0,8} passing|Tests:\s{1,32}[1-9]|Test Suites:\s{1,32}(?:\d{1,9} \w{1,32}, ){0,16}[1-9]\d{0,8} total|^# tests [1-9]|[1-9]\d{0,8} specs?, \d{1,9} failure|': ok$/;

export interface SweBenchCheck {
  parser: TestLogParser;
  /** "fail_only" for parsers that see failures only: what is missing has passed. */
  evalType: "pass_and_fail" | "fail_only";
  failToPass: readonly string[];
  passToPass: readonly string[];
}

/** Grades the output of an evaluation script by the rules of SWE-bench's own harness. */
export function gradeSweBench(output: string, check: SweBenchCheck): Grade {
  const badCode = badCodes.find(([marker]) => output.includes(marker));
  if (badCode !== undefined) return { kind: "invalid", reason: badCode[1] };
  if (!output.includes(START) || !output.includes(END)) return { kind: "invalid", reason: "no-markers" };

  const inside = parseTestLog(check.parser, betweenMarkers(output));
  // Some programs write their results to another stream, which arrives outside of the markers.
  const isEmpty = inside.kind === "parsed" && inside.statuses.size === 0;
  const parsed = isEmpty ? parseTestLog(check.parser, output) : inside;
  if (parsed.kind === "too-many-tests") return { kind: "invalid", reason: parsed.kind };

  const { statuses } = parsed;
  if (statuses.size === 0 && !showsThatTestsRan(output)) return { kind: "invalid", reason: "nothing-parsed" };
  if (statuses.size > 0 && exitCodeOf(output) !== 0 && !hasFailure(statuses))
    return { kind: "invalid", reason: "unexplained-exit-code" };
  return gradeStatuses(statuses, check);
}

function betweenMarkers(output: string): string {
  const from = output.indexOf(START) + START.length;
  const again = output.indexOf(START, from);
  const inside = output.slice(from, again < 0 ? output.length : again);
  const end = inside.indexOf(END);
  return end < 0 ? inside : inside.slice(0, end);
}

function showsThatTestsRan(output: string): boolean {
  for (const line of linesOf(output)) if (suiteRan.test(line)) return true;
  return false;
}

/** 0 where the script does not say. */
function exitCodeOf(output: string): number {
  return Number(/>>>>> Test Exit Code:\s{0,32}(-?\d{1,9})/.exec(output)?.[1] ?? 0);
}

function hasFailure(statuses: ReadonlyMap<string, TestStatus>): boolean {
  return [...statuses.values()].some((status) => status === "failed" || status === "error");
}

function gradeStatuses(statuses: ReadonlyMap<string, TestStatus>, check: SweBenchCheck): Grade {
  const { failToPass, passToPass } = check;
  const expected = [...failToPass, ...passToPass];
  if (check.evalType === "fail_only") {
    const tests = expected.map((name) =>
      gradedTest(name, statuses.get(name) === "failed" ? "failed" : "passed"),
    );
    return { kind: "graded", isResolved: tests.every(({ status }) => status === "passed"), tests };
  }
  const found = new Map(truncatedIds(expected, statuses));
  const statusOf = (name: string) => statuses.get(name) ?? found.get(name);
  const isResolved =
    failToPass.every((name) => hasPassed(statusOf(name))) &&
    // A test that is skipped now is no regression.
    passToPass.every((name) => hasPassed(statusOf(name)) || statusOf(name) === "skipped");
  return { kind: "graded", isResolved, tests: expected.map((name) => gradedTest(name, statusOf(name))) };
}

function hasPassed(status: TestStatus | undefined): boolean {
  return status === "passed" || status === "xfailed";
}

/**
 * Ids in the data set that were cut inside of their parameters, as in `test_name[log(photon`: the tests that begin
 * so stand for it, if all of them passed or none did.
 */
function* truncatedIds(
  expected: readonly string[],
  statuses: ReadonlyMap<string, TestStatus>,
): Generator<[string, TestStatus]> {
  const cut = expected.filter((name) => !statuses.has(name) && count(name, "[") > count(name, "]"));
  if (cut.length === 0) return;
  const order = new Map([...statuses.keys()].map((name, index) => [name, index]));
  const sorted = [...order.keys()].sort(byCodeUnits);
  for (const name of cut) {
    const [first, ...others] = startingWith(sorted, name)
      .sort((one, other) => (order.get(one) ?? 0) - (order.get(other) ?? 0))
      .map((each) => statuses.get(each));
    if (first !== undefined && others.every((each) => hasPassed(each) === hasPassed(first)))
      yield [name, first];
  }
}

function count(text: string, character: string): number {
  return text.split(character).length - 1;
}

function byCodeUnits(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

/** The names with this beginning, which are neighbours in the sorted list. */
function startingWith(sorted: readonly string[], beginning: string): string[] {
  let low = 0;
  for (let high = sorted.length; low < high; ) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] ?? "") < beginning) low = middle + 1;
    else high = middle;
  }
  const found: string[] = [];
  for (let index = low; sorted[index]?.startsWith(beginning); index++) found.push(sorted[index] ?? "");
  return found;
}
