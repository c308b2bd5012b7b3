import type { LogParser, TestStatus } from "./found-tests.js";
import { linesOf, withoutSuffix } from "./log-lines.js";

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
export const cargo: LogParser = (log, found) => {
  for (const line of linesOf(log)) {
    const [, name = "", word] = /^test\s+(\S+)\s+\.\.\.\s+(\w+)$/.exec(line.trim()) ?? [];
    if (word === "ok") found.set(name, "passed");
    else if (word === "FAILED") found.set(name, "failed");
  }
};

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
export const ant: LogParser = (log, found) => {
  for (const line of linesOf(log)) {
    const [, word, name = ""] = /^\[junit\]\s+\[(PASS|FAIL|ERR)\]\s+(.*)$/.exec(line.trim()) ?? [];
    if (word !== undefined) found.set(name, word === "PASS" ? "passed" : "failed");
  }
};

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

export function lastMatch(line: string, pattern: RegExp): RegExpExecArray | undefined {
  return [...line.matchAll(pattern)].at(-1);
}

/** `[ok]: name (5 ms)` of the test programs of Redis and Valkey. */
export const redis: LogParser = (log, found) => {
  for (const line of linesOf(log)) {
    const [, word, rest = ""] = /^\[(ok|err|skip|ignore)\]:\s(.+)$/.exec(line.trim()) ?? [];
    const name = withoutSuffix(rest, /(?<=.)\s\(\d{1,12}\s{0,8}m?s\)$/);
    if (word === "ok") found.set(name, "passed");
    else if (word === "err") found.set(withoutFile(name), "failed");
    else if (word !== undefined) found.set(name, "skipped");
  }
};

/** `name in tests/unit/file.tcl` */
function withoutFile(name: string): string {
  const file = lastMatch(name, /\sin\s(?=\s*\S+$)/g);
  return file === undefined ? name : name.slice(0, file.index).trimEnd();
}

/** `PASS: name` */
export const jq: LogParser = (log, found) => {
  for (const line of linesOf(log)) {
    const [, word, name = ""] = /^(PASS|FAIL):\s(.+)$/.exec(line.trim()) ?? [];
    if (word !== undefined) found.set(name, word === "PASS" ? "passed" : "failed");
  }
};

/** `pass name` */
export const micropython: LogParser = (log, found) => {
  const statuses: Readonly<Record<string, TestStatus>> = { pass: "passed", FAIL: "failed", skip: "skipped" };
  for (const line of linesOf(log)) {
    const [, word = "", name = ""] = /^(pass|FAIL|skip)\s+(.+)$/.exec(line.trim()) ?? [];
    const status = statuses[word];
    if (status !== undefined) found.set(name, status);
  }
};
