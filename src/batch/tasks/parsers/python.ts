import { type FoundTests, type LogParser, linesOf, type TestStatus, wordsOf } from "./log-lines.js";

const PASS_ENDINGS = [" ... ok", " ... OK", " ...  OK"];

/** The runner of Django: `test_name (module.Class) ... ok`, where other output may come before the status. */
export const django: LogParser = (log, found) => {
  let previous: string | null = null;
  let interrupted = { name: null as string | null, isDone: false };
  let beforeOk: string | null = null;
  for (const whole of linesOf(log)) {
    const line = whole.trim();
    if (line.includes("--version is equivalent to version"))
      found.set("--version is equivalent to version", "passed");
    if (line.includes(" ... ")) previous = before(line, " ... ");
    const ending = PASS_ENDINGS.find((each) => line.endsWith(each));
    if (ending !== undefined) found.set(withoutMigration(line).slice(0, -ending.length), "passed");
    if (line.includes(" ... skipped")) found.set(before(line, " ... skipped"), "skipped");
    if (line.endsWith(" ... FAIL")) found.set(before(line, " ... FAIL"), "failed");
    if (line.startsWith("FAIL:")) addHeading(line, { found, status: "failed" });
    if (line.endsWith(" ... ERROR")) found.set(before(line, " ... ERROR"), "error");
    if (line.startsWith("ERROR:")) addHeading(line, { found, status: "error" });
    // The test printed something between its name and its status.
    if (line.startsWith("ok") && previous !== null) found.set(previous, "passed");

    if (whole === "ok" && beforeOk !== null) found.set(beforeOk, "passed");
    if (whole === "ok" && interrupted.isDone && interrupted.name !== null) {
      found.set(interrupted.name, "passed");
      interrupted = { name: null, isDone: false };
    }
    beforeOk = interruptedBy(whole);
    interrupted = {
      name: interrupted.name ?? nameBefore(whole, "Testing against Django installed in "),
      isDone: whole.endsWith(" silenced)."),
    };
  }
};

/** `FAIL: test_name (module.Class)` */
function addHeading(line: string, { found, status }: { found: FoundTests; status: TestStatus }): void {
  const [, name] = wordsOf(line);
  if (name !== undefined) found.set(name, status);
}

/** One test's migration prints into the line of its name. */
function withoutMigration(line: string): string {
  return line.startsWith("Applying sites.0002_alter_domain_unique...test_no_migrations")
    ? line.slice(line.indexOf("...") + 3).trim()
    : line;
}

/** The test whose line one of two messages has taken the rest of; its status is alone on the next line. */
function interruptedBy(line: string): string | null {
  if (line.endsWith("/")) return nameBefore(line, "Internal Server Error: /");
  const check = "System check identified no issues (0 silenced)";
  return line.endsWith(check) ? nameBefore(line, check) : null;
}

function nameBefore(line: string, message: string): string | null {
  const at = line.indexOf(` ... ${message}`);
  return at < 0 ? null : line.slice(0, at);
}

function before(line: string, separator: string): string {
  return line.slice(0, line.indexOf(separator));
}

/** The runner of SymPy: `test_name ok`, and headings of the failures with file and name. */
export const sympy: LogParser = (log, found) => {
  for (const line of linesOf(log)) {
    const name = failureHeading(line);
    if (name !== null) found.set(name, "failed");
  }
  for (const whole of linesOf(log)) {
    const line = whole.trim();
    if (!line.startsWith("test_")) continue;
    const [name = ""] = wordsOf(line);
    if (line.endsWith(" E")) found.set(name, "error");
    if (line.endsWith(" F")) found.set(name, "failed");
    if (line.endsWith(" ok")) found.set(name, "passed");
  }
};

/** `____ sympy/core/tests/test_basic.py:test_name ____` */
function failureHeading(line: string): string | null {
  const from = line.indexOf(" ") + 1;
  const to = line.lastIndexOf(" ");
  const file = line.lastIndexOf(".py:", to - 4);
  return from === 0 || to < from + 4 || file < from ? null : line.slice(from, to);
}

/** Pytest's own words. */
const statusOfWord: ReadonlyMap<string, TestStatus> = new Map([
  ["FAILED", "failed"],
  ["PASSED", "passed"],
  ["SKIPPED", "skipped"],
  ["ERROR", "error"],
  ["XFAIL", "xfailed"],
]);

/** The lines of `pytest -rA`: a status, then the test's id. */
export const pytest: LogParser = (log, found) => {
  for (const line of linesOf(log)) addSummaryLine(line, { found });
};

/** Mouse buttons are named differently by different versions of Python. */
export const matplotlib: LogParser = (log, found) => {
  for (const line of linesOf(log)) {
    const plain = line.replaceAll("MouseButton.LEFT", "1").replaceAll("MouseButton.RIGHT", "3");
    addSummaryLine(plain, { found });
  }
};

/** Parses a log of pytest. If a parameter is an absolute path, only its last part counts: the rest differs from machine to machine. */
export const pytestOptions: LogParser = (log, found) => {
  for (const line of linesOf(log)) addSummaryLine(line, { found, nameOf: withoutDirectories });
};

function addSummaryLine(
  line: string,
  { found, nameOf = (id) => id }: { found: FoundTests; nameOf?: (id: string) => string },
): void {
  if (!/^(?:FAILED|PASSED|SKIPPED|ERROR|XFAIL)/.test(line)) return;
  const [word = "", id] = wordsOf(line.startsWith("FAILED") ? line.replaceAll(" - ", " ") : line);
  const status = statusOfWord.get(word);
  if (status === undefined || id === undefined || isSkipCount(status, id)) return;
  found.set(nameOf(id), status);
}

function withoutDirectories(id: string): string {
  const open = id.indexOf("[");
  const close = id.lastIndexOf("]");
  if (open < 0 || close < open) return id;
  const option = id.slice(open + 1, close);
  const isPath = option.startsWith("/") && !option.startsWith("//") && !option.includes("*");
  return `${id.slice(0, open)}[${isPath ? option.slice(option.lastIndexOf("/")) : option}]`;
}

/** Coloured output, ids with spaces, and the older form with the status behind the id. */
export const pytestV2: LogParser = (log, found) => {
  for (const line of linesOf(log)) {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what has to go
    const plain = line.replace(/\[\d{1,9}m/g, "").replace(/[\x01-\x1f]/g, "");
    if (/^(?:FAILED|PASSED|SKIPPED|ERROR|XFAIL)/.test(plain)) {
      const [word = "", ...id] = wordsOf(plain.startsWith("FAILED") ? beforeReason(plain) : plain);
      const status = statusOfWord.get(word);
      if (status !== undefined && id.length > 0 && !isSkipCount(status, id[0] ?? ""))
        found.set(id.join(" "), status);
    } else {
      const id = wordsOf(plain);
      const word = id.pop() ?? "";
      const status = statusOfWord.get(word);
      if (status !== undefined && id.length > 0 && plain.endsWith(word)) found.set(id.join(" "), status);
    }
  }
};

function beforeReason(line: string): string {
  const reason = line.indexOf(" - ");
  return reason < 0 ? line : line.slice(0, reason);
}

/** `SKIPPED [3] file.py:7: reason` names no test. */
function isSkipCount(status: TestStatus, id: string): boolean {
  return status === "skipped" && /^\[\d{1,9}\]$/.test(id);
}

/** Reads only passes and failures, in either order of id and status. */
export const seaborn: LogParser = (log, found) => {
  for (const line of linesOf(log)) {
    const [first = "", second] = wordsOf(line);
    if (second === undefined) continue;
    if (line.startsWith("FAILED")) found.set(second, "failed");
    else if (line.includes(" PASSED ")) {
      if (second === "PASSED") found.set(first, "passed");
    } else if (line.startsWith("PASSED")) found.set(second, "passed");
  }
};

const terminalBenchWords: ReadonlyMap<string, TestStatus> = new Map([...statusOfWord, ["XPASS", "failed"]]);

/**
 * Pytest's short test summary, as Terminal-Bench reads it: everything after its heading. A test that failed once
 * has failed, whatever a later line says of it, because the code under test can print lines, too.
 */
export const terminalBenchPytest: LogParser = (log, found) => {
  let isSummary = false;
  for (const line of linesOf(log)) {
    if (!isSummary) {
      isSummary = /=\s{0,32}short test summary info\s{0,32}=/i.test(line);
      continue;
    }
    const [, word = "", id = ""] = /^\s*(\S+)\s+(.*)$/.exec(withoutReason(line)) ?? [];
    const status = terminalBenchWords.get(word.replaceAll(":", ""));
    const separator = id.indexOf("::");
    const name = separator < 0 ? id.trim() : id.slice(separator + 2).trim();
    if (status === undefined || name === "") continue;
    const earlier = found.statuses.get(name);
    if (earlier !== "failed" && earlier !== "error") found.set(name, status);
  }
};

function withoutReason(line: string): string {
  const reason = line.startsWith("FAILED") ? line.lastIndexOf(" - ") : -1;
  return reason < 0 ? line : line.slice(0, reason);
}
