import { lastMatch } from "./compiled.js";
import type { LogParser, TestStatus } from "./found-tests.js";
import { linesOf } from "./log-lines.js";

/** `phpunit --testdox`: the name of the class, then its tests. */
export const phpunit: LogParser = (log, found) => {
  const statuses: Readonly<Record<string, TestStatus>> = { "✔": "passed", "✘": "failed", "↩": "skipped" };
  let suite = "None";
  for (const line of linesOf(log)) {
    const name = suiteName(line);
    const [, sign = "", test = ""] = /^\s*([✔✘↩])\s*(.*)$/u.exec(line) ?? [];
    const status = statuses[sign];
    if (name !== null) suite = name;
    else if (status !== undefined) found.set(`${suite} > ${test}`, status);
  }
};

/** `Name (Full\Class)` */
function suiteName(line: string): string | null {
  const end = line.endsWith(")") ? line.lastIndexOf(" (", line.length - 4) : -1;
  return end > 1 && /^[\p{L}\p{N}_]/u.test(line) ? line.slice(0, end) : null;
}

/** `rspec --format json` as lines: `name - passed` */
export const rspec: LogParser = (log, found) => {
  for (const whole of linesOf(log)) {
    const outcome = lastMatch(whole.trim(), / - (passed|failed)/g);
    if (outcome === undefined || outcome.index === 0) continue;
    found.set(whole.trim().slice(0, outcome.index), outcome[1] === "passed" ? "passed" : "failed");
  }
};

/** `Class#test_name. = 0.01 s = .` */
export const minitest: LogParser = (log, found) => {
  for (const whole of linesOf(log)) {
    const line = whole.trim();
    const outcome = Math.max(...[".", "F", "E"].map((sign) => line.lastIndexOf(sign)));
    const equals = outcome < 1 ? -1 : line.lastIndexOf("=", outcome - 1);
    const end = equals < 2 ? -1 : line.lastIndexOf(". ", equals - 2);
    if (end > 0) found.set(line.slice(0, end), line[outcome] === "." ? "passed" : "failed");
  }
};

/** `Feature ......F` */
export const cucumber: LogParser = (log, found) => {
  for (const whole of linesOf(log)) {
    const line = whole.trim();
    const signs = lastMatch(line, / \.+[.F]/g);
    if (signs !== undefined)
      found.set(line.slice(0, signs.index), signs[0].endsWith("F") ? "failed" : "passed");
  }
};

/** `test: name: .: (0.01)` of test-unit */
export const rubyUnit: LogParser = (log, found) => {
  const statuses: Readonly<Record<string, TestStatus>> = {
    ".": "passed",
    E: "failed",
    F: "failed",
    O: "skipped",
  };
  for (const whole of linesOf(log)) {
    const line = whole.trim();
    const outcome = lastMatch(line, /:\s+(\.|[EFO]\b)/g);
    const status = statuses[outcome?.[1] ?? ""];
    if (outcome !== undefined && outcome.index > 0 && status !== undefined)
      found.set(line.slice(0, outcome.index).replace(/^test: (?=.)/, ""), status);
  }
};
