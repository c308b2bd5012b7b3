import type { LogParser } from "./found-tests.js";
import { linesOf } from "./log-lines.js";

/** Karma of Chart.js: `Chrome 120.0 (Linux x86_64) name FAILED`. Tests that pass are not printed. */
export const chartJs: LogParser = (log, found) => {
  for (const coloured of linesOf(log)) {
    const line = withoutColours(coloured);
    const browser = /Chrome\s[\d.]{1,64}[^\S\r\n]\((?=.)/.exec(line);
    if (browser === null || !line.endsWith("FAILED")) continue;
    const closing = /\)[^\S\r\n]/g;
    // The parenthesis is not empty.
    closing.lastIndex = browser.index + browser[0].length + 1;
    const from = closing.exec(line) === null ? -1 : closing.lastIndex;
    if (from >= 0 && from <= line.length - "FAILED".length)
      found.set(line.slice(from, -"FAILED".length), "failed");
  }
};

/** The failures of Jasmine: `1) name` */
export const marked: LogParser = (log, found) => {
  for (const line of linesOf(log)) {
    const [, name] = /^\d{1,12}\)\s(.*)$/.exec(line) ?? [];
    if (name !== undefined) found.set(name.trim(), "failed");
  }
};

function withoutColours(line: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: an escape sequence begins with one
  return line.replace(/\x1b(?:[@-Z\\-_]|\[[0-?]{0,256}[ -/]{0,8}[@-~])/g, "");
}
