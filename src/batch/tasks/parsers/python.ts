import type { FoundTests, LogParser, TestStatus } from "./found-tests.js";
import { linesOf, wordsOf } from "./log-lines.js";

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
