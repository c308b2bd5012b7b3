import { describe, expect, it } from "vitest";
import {
  gradeSweBench,
  invalidReasons,
  type SweBenchCheck,
} from "../../../../../src/batch/tasks/parsers/grade.js";

const START = ">>>>> Start Test Output";
const END = ">>>>> End Test Output";

function output(lines: readonly string[], exitCode?: number): string {
  const code = exitCode === undefined ? [] : [`>>>>> Test Exit Code: ${exitCode}`];
  return ["+ git apply -v -", `+ : '${START}'`, ...lines, `+ : '${END}'`, ...code, "+ git checkout"].join(
    "\n",
  );
}

const check: SweBenchCheck = {
  parser: "parse_log_pytest",
  evalType: "pass_and_fail",
  failToPass: ["t.py::new"],
  passToPass: ["t.py::old"],
};
const failOnly: SweBenchCheck = { ...check, parser: "parse_log_marked", evalType: "fail_only" };

const isResolved = (lines: readonly string[], changes: Partial<SweBenchCheck> = {}) => {
  const grade = gradeSweBench(output(lines), { ...check, ...changes });
  return grade.kind === "graded" ? grade.isResolved : grade.reason;
};

describe("a resolved instance", () => {
  it("has all its tests passed", () => {
    expect(gradeSweBench(output(["PASSED t.py::new", "PASSED t.py::old"], 0), check)).toEqual({
      kind: "graded",
      isResolved: true,
      tests: [
        { name: "t.py::new", status: "passed" },
        { name: "t.py::old", status: "passed" },
      ],
    });
  });

  it("may have expected failures, and skip what passed before", () => {
    expect(isResolved(["XFAIL t.py::new", "XFAIL t.py::old"])).toBe(true);
    expect(isResolved(["PASSED t.py::new", "SKIPPED t.py::old"])).toBe(true);
  });

  it("may have other failures, and no tests that are expected", () => {
    expect(isResolved(["PASSED t.py::new", "PASSED t.py::old", "FAILED t.py::other"])).toBe(true);
    expect(isResolved(["FAILED t.py::other"], { failToPass: [], passToPass: [] })).toBe(true);
  });
});

describe("an unresolved instance", () => {
  it.each([
    [["PASSED t.py::new"], "failed"],
    [["PASSED t.py::new", "FAILED t.py::old"], "failed"],
    [["PASSED t.py::new", "ERROR t.py::old"], "error"],
  ])("has %j", (lines, status) => {
    expect(gradeSweBench(output(lines), check)).toEqual({
      kind: "graded",
      isResolved: false,
      tests: [
        { name: "t.py::new", status: "passed" },
        { name: "t.py::old", status },
      ],
    });
  });

  it("has skipped what should be mended", () => {
    expect(isResolved(["SKIPPED t.py::new", "PASSED t.py::old"])).toBe(false);
  });

  it("has a status that pytest does not have", () => {
    expect(isResolved(["PASSED: t.py::new", "PASSED t.py::old"])).toBe(false);
  });
});

describe("invalid output", () => {
  const good = ["PASSED t.py::new", "PASSED t.py::old"];
  it.each([
    ["no-markers", good.join("\n")],
    ["no-markers", `${START}\n${good.join("\n")}`],
    ["patch-not-applied", `${output(good)}\n>>>>> Patch Apply Failed`],
    ["reset-failed", `${output(good)}\n>>>>> Reset Failed`],
    ["tests-errored", `${output(good)}\n>>>>> Tests Errored`],
    ["tests-timed-out", `${output(good)}\n>>>>> Tests Timed Out`],
    ["nothing-parsed", output(["collected 0 items"])],
    ["unexplained-exit-code", output(good, 1)],
    ["unexplained-exit-code", output(good, -9)],
  ])("%s", (reason, text) => {
    expect(gradeSweBench(text, check)).toEqual({ kind: "invalid", reason });
  });

  it("every reason has a sentence that follows a colon", () => {
    for (const sentence of Object.values(invalidReasons)) expect(sentence).toMatch(/^the [^.]{20,}[^.]$/);
  });

  it("an exit code is explained by any failure", () => {
    expect(gradeSweBench(output([...good, "FAILED t.py::x"], 1), check)).toMatchObject({ isResolved: true });
    expect(gradeSweBench(output([...good, "ERROR t.py::x"], 1), check)).toMatchObject({ isResolved: true });
  });
});

describe("where results stand", () => {
  it("only those between the markers count", () => {
    const text = `FAILED t.py::new\n${output(["PASSED t.py::new", "PASSED t.py::old"])}\nFAILED t.py::old`;
    expect(gradeSweBench(text, check)).toMatchObject({ isResolved: true });
  });

  it("if there are none, those elsewhere count", () => {
    const text = `PASSED t.py::new\nPASSED t.py::old\n${output([])}`;
    expect(gradeSweBench(text, check)).toMatchObject({ isResolved: true });
  });

  it("a second beginning is an end", () => {
    const text = output(["PASSED t.py::new", START, "PASSED t.py::old"]);
    expect(gradeSweBench(text, check)).toMatchObject({ isResolved: false });
  });
});

describe("truncated ids", () => {
  const cut = (lines: readonly string[], id = "t.py::new[log(a") =>
    isResolved(lines, { failToPass: [id], passToPass: [] });

  it("stand for the tests that begin so, if those agree", () => {
    expect(cut(["PASSED t.py::new[log(a)]", "XFAIL t.py::new[log(a,b)]", "FAILED t.py::other"])).toBe(true);
    expect(cut(["PASSED t.py::new[log(a)]", "FAILED t.py::new[log(a,b)]"])).toBe(false);
    expect(cut(["FAILED t.py::new[log(b)]"])).toBe(false);
  });

  it("are only those with a bracket that is not closed", () => {
    expect(cut(["PASSED t.py::new[a][b]"], "t.py::new[a]")).toBe(false);
    expect(cut(["PASSED t.py::newer"], "t.py::new")).toBe(false);
  });

  it("count as the first of several that did not pass", () => {
    const lines = ["SKIPPED t.py::new[z", "FAILED t.py::new[a"];
    const changes = { failToPass: [], passToPass: ["t.py::new["] };
    expect(isResolved(lines, changes)).toBe(true);
    expect(isResolved(lines.toReversed(), changes)).toBe(false);
  });
});

describe("parsers that see failures only", () => {
  const ran = "5 specs, 1 failure";

  it("what is not named as failed has passed", () => {
    const grade = gradeSweBench(output([ran, "1) other"]), failOnly);
    expect(grade).toMatchObject({ kind: "graded", isResolved: true });
  });

  it("what is named has failed", () => {
    const grade = gradeSweBench(output([ran, "1) t.py::old"]), failOnly);
    expect(grade).toMatchObject({ kind: "graded", isResolved: false });
  });

  it.each([
    "Chrome: Executed 12 of 12 SUCCESS",
    "TOTAL: 3 SUCCESS",
    "  4 passing (1s)",
    "Tests:       1 passed",
    "Test Suites: 1 skipped, 2 total",
    "# tests 9",
    "case 'a': ok",
    "1 spec, 0 failures",
  ])("without any failure, %j shows that tests ran", (line) => {
    expect(gradeSweBench(output([line]), failOnly)).toMatchObject({ kind: "graded", isResolved: true });
  });

  it.each([
    "",
    "Executed 0 of 0",
    "TOTAL: 0 SUCCESS",
    "0 passing",
    "Tests: 0 total",
    "# tests 0",
    "0 specs, 0 failures",
  ])("without any failure, %j does not", (line) => {
    expect(gradeSweBench(output([line]), failOnly)).toEqual({ kind: "invalid", reason: "nothing-parsed" });
  });
});
