import { expect, it } from "vitest";
import { gradeParsedOutput, gradeSweBench } from "../../../../../src/batch/tasks/parsers/grade.js";
import { parseTestLog, testLogParsers } from "../../../../../src/batch/tasks/parsers/parse-test-log.js";
import { repetitions } from "../../../../support/fuzz.js";

/** Pieces of which patterns of the parsers consist; a pattern that goes back and forth over them would never end. */
const pieces = [
  ...[
    "=",
    "_",
    " ",
    "\t",
    ".",
    "(",
    ")",
    "[",
    "]",
    "0",
    "9",
    "a",
    "F",
    "E",
    ":",
    "-",
    "/",
    "\u001b[",
    "✓ ",
    "not ok 1 ",
  ],
  ...[
    " (",
    " (1",
    " (1 ",
    ": ",
    " in ",
    " - passed",
    " - ",
    ". ",
    " ...",
    " ... ok",
    "[ OK ] ",
    ".py:",
    "-Dtest=",
    "1) ",
  ],
  ...[">>>>> ", "[1m", " > ", " FAILED", "PASSED ", "::", " PASSED", "(ms)", "1ms", "Chrome 1 (", ") "],
];
const beginnings = ["", "PASSED ", "--- PASS: ", "  ✔ ", "[ok]: ", "PASS ", "test "];
const endings = ["", ")", " x"];

/** Other names of parsers that are here already. */
const aliases =
  /_(?:astroid|flask|marshmallow|pvlib|pyvista|sqlfluff|xarray|pydicom|requests|pylint|astropy|scikit|sphinx|react_pdf)$/;
const parsers = testLogParsers.filter((name) => !aliases.test(name));

it.each(parsers)("%s gets to the end of lines that repeat anything", { timeout: 120_000 }, (parser) => {
  for (const piece of pieces) {
    const repeated = piece.repeat(Math.floor(repetitions({ short: 4000, deep: 16_000 }) / piece.length));
    const lines = beginnings.flatMap((beginning) => endings.map((ending) => beginning + repeated + ending));
    expect(parseTestLog(parser, lines.join("\n")).kind).toBe("parsed");
  }
});

it("a log of 200 MB with lines of 100 MB is read", { timeout: 120_000 }, () => {
  const long = "x".repeat(100 * 1024 ** 2);
  const log = `PASSED a.py::first\n${long}\nFAILED a.py::middle ${long}\nPASSED a.py::last`;
  const found = parseTestLog("parse_log_pytest", log);
  expect(found.kind === "parsed" && [...found.statuses]).toEqual([
    ["a.py::first", "passed"],
    ["a.py::middle", "failed"],
    ["a.py::last", "passed"],
  ]);
});

it("more tests than any program has make the output invalid", { timeout: 120_000 }, () => {
  const lines = Array.from({ length: 200_001 }, (_, index) => `PASSED ${index}`).join("\n");
  const output = `>>>>> Start Test Output\n${lines}\n>>>>> End Test Output`;
  const check = {
    parser: "parse_log_pytest",
    evalType: "fail_only",
    failToPass: ["x"],
    passToPass: [],
  } as const;
  expect(gradeSweBench(output, check)).toEqual({ kind: "invalid", reason: "too-many-tests" });
  const summary = `= short test summary info =\n${lines}`;
  expect(gradeParsedOutput(summary, "pytest")).toEqual({ kind: "invalid", reason: "too-many-tests" });
});

it("looking for signs that tests ran gets to the end of lines that repeat anything", {
  timeout: 120_000,
}, () => {
  for (const piece of [
    "1",
    "1 a, ",
    "Tests: ",
    "Test Suites: 1 a, ",
    "Executed 1",
    " ",
    "1 specs, ",
    "': ",
  ]) {
    const line = piece.repeat(Math.ceil(1_000_000 / piece.length));
    const output = `>>>>> Start Test Output\n${line}\n>>>>> End Test Output\n>>>>> Test Exit Code: ${" ".repeat(1_000_000)}`;
    const check = {
      parser: "parse_log_marked",
      evalType: "fail_only",
      failToPass: ["x"],
      passToPass: [],
    } as const;
    expect(gradeSweBench(output, check).kind).toMatch(/^(?:graded|invalid)$/);
  }
});
