import { expect, it } from "vitest";
import { parsed } from "../../../../support/parsed-test-log.js";

it("go test", () => {
  const log = [
    "=== RUN   TestParse",
    "    --- PASS: TestParse/with_(parentheses) (0.00s)",
    "--- PASS: TestParse (0.01s)",
    "--- FAIL: TestWrite (1.20s)",
    "--- SKIP: TestNet (0.00s)",
    "--- PASS: TestOdd () (0.00s)",
    "--- PASS: TestNoTime",
    "--- PASS: (0.00s)",
    "ok  \texample.org/pkg\t0.01s",
  ];
  expect(parsed("parse_log_gotest", log)).toEqual({
    "TestParse/with_(parentheses)": "passed",
    TestParse: "passed",
    TestWrite: "failed",
    TestNet: "skipped",
    "TestOdd ()": "passed",
  });
});

it("cargo test", () => {
  const log = [
    "running 4 tests",
    "test parse::reads ... ok",
    "test parse::writes ... FAILED",
    "test parse::slow ... ignored",
    "test parse::panics - should panic ... ok",
    "test result: FAILED. 1 passed; 1 failed",
  ];
  expect(parsed("parse_log_cargo", log)).toEqual({ "parse::reads": "passed", "parse::writes": "failed" });
});

it("maven: commands and results in order, also where results come late", () => {
  const log = [
    "+ mvn test -Dtest=GsonTest#reads -pl gson",
    "[INFO] BUILD SUCCESS",
    "+ mvn test -Dtest=GsonTest#writes",
    "+ mvn test -Dtest=GsonTest#streams",
    "[INFO] BUILD FAILURE",
    "[INFO] BUILD SUCCESS",
    "+ mvn test -Dtest=GsonTest#never",
  ];
  expect(parsed("parse_log_maven", log)).toEqual({
    "GsonTest#reads": "passed",
    "GsonTest#writes": "failed",
    "GsonTest#streams": "passed",
  });
  expect(parsed("parse_log_maven", ["BUILD SUCCESS", "mvn -Dtest=A -Dtest= -Dtest=B"])).toEqual({
    B: "passed",
  });
});

it("ant", () => {
  const log = [
    "    [junit] [PASS] a.B.c(lombok)",
    "    [junit] [FAIL] a.B.d",
    "[junit] [ERR] a.B.e",
    "[javac] [PASS] x",
  ];
  expect(parsed("parse_log_ant", log)).toEqual({
    "a.B.c(lombok)": "passed",
    "a.B.d": "failed",
    "a.B.e": "failed",
  });
});

it("gradle, also where a warning comes between name and status", () => {
  const log = [
    "> Task :lucene:core:test FAILED",
    "org.apache.TestIndex > testAdd PASSED",
    "org.apache.TestIndex > testDelete FAILED",
    "org.apache.TestIndex > testMerge",
    "WARNING: something",
    "PASSED",
    "FAILED",
  ];
  expect(parsed("parse_log_gradle_custom", log)).toEqual({
    "org.apache.TestIndex > testAdd": "passed",
    "org.apache.TestIndex > testDelete": "failed",
    "org.apache.TestIndex > testMerge": "passed",
  });
});

it("googletest", () => {
  const log = [
    "[ RUN      ] format_test.escape",
    "[       OK ] format_test.escape (0 ms)",
    "3: [  FAILED  ] format_test.float (12 ms)",
    "[  FAILED  ] format_test.float",
    "[       OK ] odd [ OK ] name (x) (1 ms)",
  ];
  expect(parsed("parse_log_googletest", log)).toEqual({
    "format_test.escape": "passed",
    "format_test.float": "failed",
    "name (x)": "passed",
  });
});

it("redis", () => {
  const log = [
    "[ok]: SET and GET (12 ms)",
    "[err]: INCR over 32 bit in tests/unit/incr.tcl",
    "[skip]: needs TLS",
    "[ignore]: not supported in cluster mode",
    "[ready]: 17",
  ];
  expect(parsed("parse_log_redis", log)).toEqual({
    "SET and GET": "passed",
    "INCR over 32 bit": "failed",
    "needs TLS": "skipped",
    "not supported in cluster mode": "skipped",
  });
});

it("jq and micropython", () => {
  expect(parsed("parse_log_jq", ["PASS: tests/jqtest", "FAIL: tests/onigtest", "# PASS:  2"])).toEqual({
    "tests/jqtest": "passed",
    "tests/onigtest": "failed",
  });
  expect(
    parsed("parse_log_micropython_test", ["pass  basics/a.py", "FAIL  basics/b.py", "skip  c.py"]),
  ).toEqual({
    "basics/a.py": "passed",
    "basics/b.py": "failed",
    "c.py": "skipped",
  });
});

it("phpunit --testdox", () => {
  const log = [
    "Sheet (PhpOffice\\Tests\\Sheet)",
    " ✔ Reads cells with data set #1 (a)",
    " ✘ Writes cells",
    "   │ Failed asserting that false is true.",
    "Chart (PhpOffice\\Tests\\Chart)",
    " ↩ Draws",
  ];
  expect(parsed("parse_log_phpunit", log)).toEqual({
    "Sheet > Reads cells with data set #1 (a)": "passed",
    "Sheet > Writes cells": "failed",
    "Chart > Draws": "skipped",
  });
});

it("rspec", () => {
  const log = [
    "Fastlane reads - passed",
    "Fastlane - passed twice - failed",
    "Fastlane waits - pending",
    " - passed",
  ];
  expect(parsed("parse_log_rspec_transformed_json", log)).toEqual({
    "Fastlane reads": "passed",
    "Fastlane - passed twice": "failed",
  });
});

it("minitest, cucumber and test-unit", () => {
  expect(
    parsed("parse_log_minitest", ["TestSite#test_reads. = 0.01 s = .", "TestSite#test_x. = 0.10 s = F"]),
  ).toEqual({
    "TestSite#test_reads": "passed",
    "TestSite#test_x": "failed",
  });
  expect(parsed("parse_log_cucumber", ["features/a.feature .....", "features/b.feature ..F.."])).toEqual({
    "features/a.feature": "passed",
    "features/b.feature": "failed",
  });
  const log = ["  test: reads a: b:\t.: (0.01)", "  test_writes:  F", "  test_waits:\tO", "Finished in 1 s"];
  expect(parsed("parse_log_ruby_unit", log)).toEqual({
    "reads a: b": "passed",
    test_writes: "failed",
    test_waits: "skipped",
  });
});
