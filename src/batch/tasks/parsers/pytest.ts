import type { FoundTests, LogParser, TestStatus } from "./found-tests.js";
import { linesOf, wordsOf } from "./log-lines.js";

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
