import { describe, expect, it } from "vitest";
import { parsed } from "../../../../support/parsed-test-log.js";

const summary = [
  "============================= test session starts ==============================",
  "collected 6 items",
  "tests/test_parse.py ..F.sx                                               [100%]",
  "=========================== short test summary info ============================",
  "PASSED tests/test_parse.py::test_empty",
  "PASSED tests/test_parse.py::test_range[1-5]",
  "SKIPPED [2] tests/test_parse.py:31: needs a network",
  "XFAIL tests/test_parse.py::test_unicode - known",
  "ERROR tests/test_parse.py::test_setup - RuntimeError: no",
  "FAILED tests/test_parse.py::test_half[a - b] - assert 1 == 2",
  "========================= 1 failed, 2 passed in 0.12s ==========================",
];

describe("pytest", () => {
  it("reads the summary, and takes the count of skips for no test", () => {
    expect(parsed("parse_log_pytest", summary)).toEqual({
      "tests/test_parse.py::test_empty": "passed",
      "tests/test_parse.py::test_range[1-5]": "passed",
      "tests/test_parse.py::test_unicode": "xfailed",
      "tests/test_parse.py::test_setup": "error",
      "tests/test_parse.py::test_half[a": "failed",
    });
  });

  it("takes PASSED [100%] for a test, which ids of the data set ask for", () => {
    expect(parsed("parse_log_pytest", "PASSED [100%]")).toEqual({ "[100%]": "passed" });
  });

  it("believes the last line about a test", () => {
    expect(parsed("parse_log_pytest", ["PASSED a.py::b", "FAILED a.py::b - no"])).toEqual({
      "a.py::b": "failed",
    });
  });

  it.each([["PASSED"], ["PASSEDx a.py::b"], [" PASSED a.py::b"], ["FAILED: a.py::b"], ["passed a.py::b"]])(
    "leaves %j aside",
    (line) => {
      expect(parsed("parse_log_pytest", line)).toEqual({});
    },
  );

  it("ends lines at carriage returns, too", () => {
    expect(parsed("parse_log_pytest", "PASSED a\r\nPASSED b\rPASSED c")).toEqual({
      a: "passed",
      b: "passed",
      c: "passed",
    });
  });

  it.each(["astroid", "flask", "marshmallow", "pvlib", "pyvista", "sqlfluff", "xarray"] as const)(
    "is what parse_log_%s is",
    (name) => {
      expect(parsed(`parse_log_${name}`, summary)).toEqual(parsed("parse_log_pytest", summary));
    },
  );
});

it.each(["pytest_options", "pydicom", "requests", "pylint"] as const)(
  "parse_log_%s shortens parameters that are paths",
  (name) => {
    const log = [
      "PASSED t.py::test_file[/tmp/pytest-1/data/a.dcm]",
      "PASSED t.py::test_url[http://example.org/a]",
      "PASSED t.py::test_host[//host/a]",
      "FAILED t.py::test_glob[/tmp/*.py] - no",
      "SKIPPED [1] t.py:3: no",
      "PASSED t.py::test_plain",
      "PASSED t.py::test_open[half",
    ];
    expect(parsed(`parse_log_${name}`, log)).toEqual({
      "t.py::test_file[/a.dcm]": "passed",
      "t.py::test_url[http://example.org/a]": "passed",
      "t.py::test_host[//host/a]": "passed",
      "t.py::test_glob[/tmp/*.py]": "failed",
      "t.py::test_plain": "passed",
      "t.py::test_open[half": "passed",
    });
  },
);

it.each(["pytest_v2", "astropy", "scikit", "sphinx"] as const)(
  "parse_log_%s reads colours, ids with spaces and the older order",
  (name) => {
    const log = [
      "\u001b[32mPASSED\u001b[0m t.py::\u001b[1mtest_a\u001b[0m",
      "\u001b[31mFAILED\u001b[0m t.py::test_b[x y] - assert 'a - b'",
      "PASSED t.py::test_c[log(photon cm)]",
      "SKIPPED [1] t.py:3: no",
      "t.py::test_old[1 2] PASSED",
      "t.py::test_older ERROR",
      "astropy/units/test.py ..x.. PASSED?",
      "PASSED",
    ];
    expect(parsed(`parse_log_${name}`, log)).toEqual({
      "t.py::test_a": "passed",
      "t.py::test_b[x y]": "failed",
      "t.py::test_c[log(photon cm)]": "passed",
      "t.py::test_old[1 2]": "passed",
      "t.py::test_older": "error",
    });
  },
);

it("matplotlib's mouse buttons have their numbers", () => {
  const log = [
    "PASSED t.py::test_pan[MouseButton.LEFT-x]",
    "FAILED t.py::test_pan[MouseButton.RIGHT-x] - no",
  ];
  expect(parsed("parse_log_matplotlib", log)).toEqual({
    "t.py::test_pan[1-x]": "passed",
    "t.py::test_pan[3-x]": "failed",
  });
});

it("seaborn's passes stand before or behind the id", () => {
  const log = [
    "tests/test_a.py::test_one PASSED [ 50%]",
    "PASSED tests/test_a.py::test_two",
    "FAILED tests/test_a.py::test_three - assert",
    "a b PASSED c",
    "SKIPPED tests/test_a.py::test_four",
  ];
  expect(parsed("parse_log_seaborn", log)).toEqual({
    "tests/test_a.py::test_one": "passed",
    "tests/test_a.py::test_two": "passed",
    "tests/test_a.py::test_three": "failed",
  });
});
