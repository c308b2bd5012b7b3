import type { LogParser, TestStatus } from "./found-tests.js";
import { linesOf } from "./log-lines.js";

const statusOfWord: ReadonlyMap<string, TestStatus> = new Map([
  ["PASSED", "passed"],
  ["SKIPPED", "skipped"],
  ["XFAIL", "xfailed"],
  ["FAILED", "failed"],
  ["ERROR", "error"],
  ["XPASS", "failed"],
]);

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
    const status = statusOfWord.get(word.replaceAll(":", ""));
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
