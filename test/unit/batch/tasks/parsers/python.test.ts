import { expect, it } from "vitest";
import { parsed } from "../../../../support/parsed-test-log.js";

it("django's runner", () => {
  const log = [
    "Creating test database for alias 'default'...",
    "test_add (basic.tests.MathTests) ... ok",
    "A docstring stands for the name. ... ok",
    "test_slow (basic.tests.MathTests) ...  OK",
    "test_skip (basic.tests.MathTests) ... skipped 'no GIS'",
    "test_sub (basic.tests.MathTests) ... FAIL",
    "test_div (basic.tests.MathTests) ... ERROR",
    "test_chatty (basic.tests.MathTests) ... some output",
    "more of it",
    "ok",
    "test_server (view.tests.View) ... Internal Server Error: /boom/",
    "ok",
    "  Applying sites.0002_alter_domain_unique...test_no_migrations (m.Tests) ... ok",
    "======================================================================",
    "FAIL: test_sub (basic.tests.MathTests)",
    "ERROR: test_import",
    "FAIL:",
  ];
  expect(parsed("parse_log_django", log)).toEqual({
    "test_add (basic.tests.MathTests)": "passed",
    "A docstring stands for the name.": "passed",
    "test_slow (basic.tests.MathTests)": "passed",
    "test_skip (basic.tests.MathTests)": "skipped",
    "test_sub (basic.tests.MathTests)": "failed",
    "test_div (basic.tests.MathTests)": "error",
    "test_chatty (basic.tests.MathTests)": "passed",
    "test_server (view.tests.View)": "passed",
    "test_no_migrations (m.Tests)": "passed",
    test_sub: "failed",
    test_import: "error",
  });
});

it("a message of django over several lines, with another test's line in it", () => {
  const log = [
    "test_first (a.T) ... Testing against Django installed in '/x' with up to 4 processes",
    "Found 3 tests. System check identified no issues (0 silenced).",
    "test_other (a.T) ... FAIL",
    "System check identified no issues (1 silenced).",
    "ok",
  ];
  expect(parsed("parse_log_django", log)).toEqual({
    "test_first (a.T)": "passed",
    // The status alone on a line belongs to the test that was named last.
    "test_other (a.T)": "passed",
  });
});

it("sympy's runner, where the line of a test counts more than its heading", () => {
  const log = [
    "sympy/core/tests/test_basic.py[4] ",
    "test_structure ok",
    "test_equality F",
    "test_matches E",
    "test_slow f",
    "________ sympy/core/tests/test_basic.py:test_equality ________",
    "Traceback (most recent call last):",
    '  File "/testbed/sympy/core/tests/test_basic.py", line 3, in test_equality',
  ];
  expect(parsed("parse_log_sympy", log)).toEqual({
    test_structure: "passed",
    test_equality: "failed",
    test_matches: "error",
    "sympy/core/tests/test_basic.py:test_equality": "failed",
  });
});
