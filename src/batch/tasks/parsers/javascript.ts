import {
  indentOf,
  type LogParser,
  linesOf,
  type TestStatus,
  testInEachLine,
  withoutSuffix,
} from "./log-lines.js";

const statusOfSign: Readonly<Record<string, TestStatus>> = {
  "✓": "passed",
  "✔": "passed",
  "✕": "failed",
  "×": "failed",
  "✖": "failed",
  "○": "skipped",
  "↓": "skipped",
};

/** `jest --verbose` */
export const jest = testInEachLine(/^(?<word>[✓✕○])\s(?<name>.+)$/u, statusOfSign, (name) =>
  withoutSuffix(name, /(?<=.)\s\(\d{1,12}\s{0,8}m?s\)$/).trim(),
);

/** `vitest --reporter=verbose` */
export const vitest = testInEachLine(/^(?<word>[✓×↓])\s(?<name>.+)$/u, statusOfSign, (name) =>
  withoutSuffix(name, /(?<=.)\s(?:\d{1,12}\s{0,8}m?s?|\[skipped\])$/),
);

/** The results of `jest --json`, one a line, as `[PASSED] suite > test`. */
export const jestJson = testInEachLine(/^\[(?<word>PASSED|FAILED)\]\s(?<name>.+)$/, {
  PASSED: "passed",
  FAILED: "failed",
});

/** Jest's files instead of its tests: `PASS path (1.2 s)`. */
export const jestFiles: LogParser = (log, found) => {
  for (const line of linesOf(log)) {
    const [, word, path = ""] = /^(PASS|FAIL)\s(.*)$/.exec(line) ?? [];
    if (word !== undefined) found.set(beforeDuration(path), word === "PASS" ? "passed" : "failed");
  }
};

/** Up to the last duration in one of three notations, tried in this order. */
function beforeDuration(path: string): string {
  for (const duration of [/\s\([\d.]{1,20}ms\)/g, /\s\([\d.]{1,20}\ss\)/g, /\s\([\d.]{1,20}s\)/g]) {
    let last: number | undefined;
    for (const { index } of path.matchAll(duration)) last = index;
    if (last !== undefined) return path.slice(0, last);
  }
  return path;
}

/** Like `jestFiles`, but durations count at the end only, and a file that passed once has passed. */
export const grommet: LogParser = (log, found) => {
  for (const [word, status] of [["FAIL", "failed"] as const, ["PASS", "passed"] as const])
    for (const line of linesOf(log))
      if (line.startsWith(word) && /\s/.test(line.charAt(word.length)))
        found.set(withoutSuffix(line.slice(word.length).trim(), /\s\([\d.]{1,20}\s?m?s\)$/), status);
};

/** The list of mocha, without what follows `12 passing`. A test is named with the indented line before it. */
export const mocha: LogParser = (log, found) => {
  let suite: string | null = null;
  const add = (name: string, status: TestStatus) =>
    found.set([...(suite === null ? [] : [suite]), withoutTime(name)].join("."), status);
  let isFirst = true;
  for (const line of linesOf(log)) {
    if (!isFirst && /^[ \t]{0,1000}\d{1,12} passing/.test(line)) return;
    isFirst = false;
    const text = line.trim();
    if (/^[✓✔]/u.test(text)) add(text.slice(1), "passed");
    else if (/^\d{1,12}\)/.test(text)) add(text.slice(text.indexOf(")") + 1), "failed");
    else if (line.startsWith("  ")) suite = text;
  }
};

function withoutTime(name: string): string {
  return name.replace(/\(\d{1,12}ms\)/g, "").trim();
}

/** Karma's mocha reporter from the start of the browser to the summary; suites by their indentation. */
export const karma: LogParser = (log, found) => {
  const suites: string[] = [];
  let indent = -1;
  let isStarted = false;
  for (const line of linesOf(log)) {
    if (line.startsWith("SUMMARY:")) return;
    if (line.includes("Starting browser")) isStarted = true;
    else if (isStarted) {
      const [, sign = "", name] = /^\s*([✔✖])\s(.*)$/u.exec(line) ?? [];
      const status = statusOfSign[sign];
      if (status !== undefined) found.set([...suites, name].join(" > "), status);
      else if (indentOf(line) > 1) {
        // One of the spaces separates the indentation from the name.
        const width = indentOf(line) - 1;
        if (width > indent) suites.push(line.slice(width + 1));
        else if (width < indent) suites.pop();
        indent = width;
      }
    }
  }
};

/** The Test Anything Protocol. The name includes a dash, if the program prints one. */
export const tap = testInEachLine(/^(?<word>ok|not ok) \d{1,12} (?<name>.+)$/, {
  ok: "passed",
  "not ok": "failed",
});

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
