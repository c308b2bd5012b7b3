import { type LogParser, linesOf, type TestStatus, testInEachLine, withoutSuffix } from "./log-lines.js";

/** `--- PASS: TestName (0.01s)` */
export const gotest: LogParser = (log, found) => {
  const statuses: Readonly<Record<string, TestStatus>> = { PASS: "passed", FAIL: "failed", SKIP: "skipped" };
  for (const whole of linesOf(log)) {
    const line = whole.trim();
    const [prefix = "", word = ""] = /^--- (PASS|FAIL|SKIP): /.exec(line) ?? [];
    const status = statuses[word];
    // The name ends before the last parenthesis, which is not empty.
    const end = line.endsWith(")") ? line.lastIndexOf(" (", line.length - 4) : -1;
    if (status !== undefined && end > prefix.length) found.set(line.slice(prefix.length, end), status);
  }
};

/** `test module::name ... ok` */
export const cargo = testInEachLine(/^test\s+(?<name>\S+)\s+\.\.\.\s+(?<word>ok|FAILED)$/, {
  ok: "passed",
  FAILED: "failed",
});

/** Maven prints no test that passes, so each is run alone: the commands (of `set -x`) and results are paired in order. */
export const maven: LogParser = (log, found) => {
  const waiting: string[] = [];
  const early: TestStatus[] = [];
  let next = 0;
  const pair = (status: TestStatus) => {
    const name = waiting[next];
    if (name === undefined) return false;
    next += 1;
    found.set(name, status);
    return true;
  };
  for (const whole of linesOf(log)) {
    const line = whole.trim();
    const name = lastTestOption(line);
    if (name !== null) waiting.push(name);
    const [, word] = /BUILD (SUCCESS|FAILURE)$/.exec(line) ?? [];
    if (word === undefined) continue;
    const status = word === "SUCCESS" ? "passed" : "failed";
    if (!pair(status)) early.push(status);
  }
  for (const status of early) if (!pair(status)) return;
};

function lastTestOption(line: string): string | null {
  let last: string | null = null;
  for (const option of line.split("-Dtest=").slice(1)) last = /^\S+/.exec(option)?.[0] ?? last;
  return last;
}

/** `[junit] [PASS] name` */
export const ant = testInEachLine(/^\[junit\]\s+\[(?<word>PASS|FAIL|ERR)\]\s+(?<name>.*)$/, {
  PASS: "passed",
  FAIL: "failed",
  ERR: "failed",
});

/** `com.example.Test > method PASSED`, where other output may come between the name and the status. */
export const gradle: LogParser = (log, found) => {
  let waiting: string | null = null;
  for (const whole of linesOf(log)) {
    const line = whole.trim();
    const [word] = /(?:PASSED|FAILED)$/.exec(line) ?? [];
    const status = word === "PASSED" ? "passed" : "failed";
    const name = word === undefined ? "" : line.slice(0, -word.length);
    if (name.length > 2 && /\s$/.test(name) && !name.startsWith(">")) {
      found.set(name.slice(0, -1), status);
      waiting = null;
    } else if (/^[^>]\S*\s+>\s+\S+$/.test(line)) waiting = line;
    else if (waiting !== null && line === word) {
      found.set(waiting, status);
      waiting = null;
    }
  }
};

/** `[       OK ] Suite.Name (3 ms)` */
export const googletest: LogParser = (log, found) => {
  for (const whole of linesOf(log)) {
    const line = whole.trim();
    if (!line.endsWith(")")) continue;
    const time = lastMatch(line, /\s\(/g)?.index ?? -1;
    const marks = line.slice(0, time + 1).matchAll(/\[\s{0,32}(OK|FAILED)\s{0,32}\]\s/g);
    const mark = [...marks].at(-1);
    const from = mark === undefined ? 0 : mark.index + mark[0].length;
    if (mark !== undefined && from <= time)
      found.set(line.slice(from, time), mark[1] === "OK" ? "passed" : "failed");
  }
};

function lastMatch(line: string, pattern: RegExp): RegExpExecArray | undefined {
  return [...line.matchAll(pattern)].at(-1);
}

/** `[ok]: name (5 ms)` of the test programs of Redis and Valkey. */
export const redis = testInEachLine(
  /^\[(?<word>ok|err|skip|ignore)\]:\s(?<name>.+)$/,
  { ok: "passed", err: "failed", skip: "skipped", ignore: "skipped" },
  (whole, status) => {
    const name = withoutSuffix(whole, /(?<=.)\s\(\d{1,12}\s{0,8}m?s\)$/);
    return status === "failed" ? withoutFile(name) : name;
  },
);

/** `name in tests/unit/file.tcl` */
function withoutFile(name: string): string {
  const file = lastMatch(name, /\sin\s(?=\s*\S+$)/g);
  return file === undefined ? name : name.slice(0, file.index).trimEnd();
}

/** `PASS: name` */
export const jq = testInEachLine(/^(?<word>PASS|FAIL):\s(?<name>.+)$/, { PASS: "passed", FAIL: "failed" });

/** `pass name` */
export const micropython = testInEachLine(/^(?<word>pass|FAIL|skip)\s+(?<name>.+)$/, {
  pass: "passed",
  FAIL: "failed",
  skip: "skipped",
});

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
