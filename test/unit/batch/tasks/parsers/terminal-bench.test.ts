import { describe, expect, it } from "vitest";
import { gradeParsedOutput } from "../../../../../src/batch/tasks/parsers/grade.js";
import { parsed } from "../../../../support/parsed-test-log.js";

const heading = "=========================== short test summary info ============================";

describe("Terminal-Bench's pytest", () => {
  it("reads what follows the heading, without the file's name", () => {
    const log = [
      "FAILED before.py::the_heading",
      heading,
      "PASSED ../tests/test_outputs.py::test_exists",
      "PASSED ../tests/test_outputs.py::TestSize::test_small",
      "SKIPPED [1] ../tests/test_outputs.py:9: slow",
      "XFAIL ../tests/test_outputs.py::test_known",
      "XPASS ../tests/test_outputs.py::test_unexpected",
      "ERROR: ../tests/test_outputs.py::test_setup",
      "FAILED ../tests/test_outputs.py::test_content - AssertionError: a - b",
      "============ 1 failed in 0.02s ============",
    ];
    expect(parsed("pytest", log)).toEqual({
      test_exists: "passed",
      "TestSize::test_small": "passed",
      "[1] ../tests/test_outputs.py:9: slow": "skipped",
      test_known: "xfailed",
      test_unexpected: "failed",
      test_setup: "error",
      "test_content - AssertionError: a": "failed",
    });
  });

  it("does not let a later line take a failure back", () => {
    expect(
      parsed("pytest", [heading, "FAILED t.py::a", heading, "PASSED t.py::a", "PASSED t.py::b"]),
    ).toEqual({
      a: "failed",
      b: "passed",
    });
  });
});

describe("the grade of parsed output", () => {
  it("is resolved if all tests passed", () => {
    const output = `${heading}\nPASSED t.py::a\nXFAIL t.py::b\nSKIPPED t.py::c\n`;
    expect(gradeParsedOutput(output, "pytest")).toEqual({
      kind: "graded",
      isResolved: true,
      tests: [
        { name: "a", status: "passed" },
        { name: "b", status: "passed" },
        { name: "c", status: "skipped" },
      ],
    });
  });

  it.each(["FAILED t.py::b", "ERROR t.py::b", "XPASS t.py::b"])("is not resolved with %s", (line) => {
    const grade = gradeParsedOutput(`${heading}\nPASSED t.py::a\n${line}\n`, "pytest");
    expect(grade).toMatchObject({ kind: "graded", isResolved: false });
  });

  it.each(["", "PASSED t.py::a", heading])(
    "is invalid if no test is named after the heading, as in %j",
    (output) => {
      expect(gradeParsedOutput(output, "pytest")).toEqual({ kind: "invalid", reason: "nothing-parsed" });
    },
  );
});
