import { expect, it } from "vitest";
import { parsed } from "../../../../support/parsed-test-log.js";

it("jest", () => {
  const log = [
    "PASS packages/a.test.js",
    "  parser",
    "    ✓ reads (12 ms)",
    "    ✓ reads (twice) (3 s)",
    "    ✕ writes (1 ms)",
    "    ○ skipped later",
    "    ✓ ",
    "  ● parser › writes",
  ];
  expect(parsed("parse_log_jest", log)).toEqual({
    reads: "passed",
    "reads (twice)": "passed",
    writes: "failed",
    "skipped later": "skipped",
  });
});

it("jest's own JSON, transformed to lines", () => {
  expect(parsed("parse_log_jest_json", ["[PASSED] a > b", "[FAILED] a > c", "[PENDING] a > d"])).toEqual({
    "a > b": "passed",
    "a > c": "failed",
  });
});

it.each(["parse_log_carbon", "parse_log_react_pdf"] as const)("%s: files of jest", (parser) => {
  const log = [
    "PASS src/a.js (5.1 s)",
    "PASS src/b.js (12ms) (3s)",
    "FAIL src/c.js (1s) rest",
    "FAIL src/d.js",
  ];
  expect(parsed(parser, log)).toEqual({
    "src/a.js": "passed",
    "src/b.js": "passed",
    "src/c.js": "failed",
    "src/d.js": "failed",
  });
});

it("grommet: a file that passed once has passed", () => {
  const log = ["PASS src/a.js (5.1 s)", "FAIL src/a.js", "FAIL src/b.js (80ms)", "PASSsrc/c.js"];
  expect(parsed("parse_log_grommet", log)).toEqual({ "src/a.js": "passed", "src/b.js": "failed" });
});

it("vitest", () => {
  const log = [
    " ✓ packages/reactivity/ref.spec.ts > ref > holds a value 2ms",
    " ✓ a > b 12 ms",
    " × a > c",
    " ↓ a > d [skipped]",
    " ❯ a > e",
  ];
  expect(parsed("parse_log_vitest", log)).toEqual({
    "packages/reactivity/ref.spec.ts > ref > holds a value": "passed",
    "a > b": "passed",
    "a > c": "failed",
    "a > d": "skipped",
  });
});

it("mocha, up to its summary", () => {
  const log = [
    "",
    "  hljs",
    "    #highlight",
    "      ✓ marks keywords (45ms)",
    "      ✔ escapes",
    "      1) marks numbers",
    "",
    "  2 passing (1s)",
    "  1 failing",
    "  1) hljs",
    "       marks strings:",
  ];
  expect(parsed("parse_log_highlightjs", log)).toEqual({
    "#highlight.marks keywords": "passed",
    "#highlight.escapes": "passed",
    "#highlight.marks numbers": "failed",
  });
});

it("karma, between the start of the browser and the summary", () => {
  const log = [
    "  ✔ before the start",
    "Starting browser ChromeHeadless",
    "  render()",
    "    children",
    "      ✔ renders text",
    "      ✖ renders lists",
    "  hydrate()",
    "SUMMARY:",
    "  ✔ after the end",
  ];
  expect(parsed("parse_log_karma", log)).toEqual({
    "render() > children > renders text": "passed",
    "render() > children > renders lists": "failed",
  });
});

it("the Test Anything Protocol", () => {
  const log = [
    "TAP version 13",
    "ok 1 Maths > adds",
    "not ok 2 - Maths > divides",
    "  ok 3 nested",
    "1..3",
    "ok",
  ];
  expect(parsed("parse_log_tap", log)).toEqual({
    "Maths > adds": "passed",
    "- Maths > divides": "failed",
    nested: "passed",
  });
});

it("failures of Chart.js in a browser", () => {
  const log = [
    "\u001b[31mChrome 120.0.0.0 (Linux x86_64) Chart.Bar draws a bar FAILED\u001b[39m",
    "Chrome 120.0.0.0 (Linux x86_64): Executed 3 of 4 (1 FAILED)",
    "Chrome 120.0.0.0 (Linux x86_64) LOG: 'hello'",
  ];
  expect(parsed("parse_log_chart_js", log)).toEqual({ "Chart.Bar draws a bar ": "failed" });
});

it("failures of marked", () => {
  expect(parsed("parse_log_marked", ["Failures:", "1) Marked should parse  ", " 2) indented"])).toEqual({
    "Marked should parse": "failed",
  });
});
