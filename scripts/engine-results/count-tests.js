import { relative } from "node:path";
import { root } from "./places.js";

/** A test's name says in brackets on what it does not run, and why. */
const REASON = /\[(?:not on [^:\]]+: )?([^\]]+)\]/;

/**
 * What happened to the tests of a report: how many passed, which failed, and how many were skipped for which reason. A skipped test whose
 * name gives no reason counts under the name of its file. A file that ran once more counts as it ended then.
 */
export function countTests(report, again = null) {
  const second = again?.testResults ?? [];
  const files = report.testResults.map((file) => second.find(({ name }) => name === file.name) ?? file);
  const tests = files.flatMap(({ name, assertionResults }) =>
    assertionResults.map((test) => ({ ...test, file: relative(root, name) })),
  );
  const passed = tests.filter(({ status }) => status === "passed").length;
  const failed = [...tests.filter(({ status }) => status === "failed"), ...brokenFiles(files)].map(nameOf);
  const skipped = tests.filter(({ status }) => status !== "passed" && status !== "failed");
  return { files: files.length, passed, failed: failed.toSorted(), skipped: byReason(skipped) };
}

/** A file that cannot be loaded, or whose clean-up fails, has failed although none of its tests has. */
function brokenFiles(files) {
  return files
    .filter(({ status, assertionResults }) => status === "failed" && !assertionResults.some(isFailed))
    .map(({ name }) => ({ file: relative(root, name), fullName: "(the file)" }));
}

function isFailed({ status }) {
  return status === "failed";
}

function nameOf({ file, fullName }) {
  return `${file}: ${fullName}`;
}

function byReason(skipped) {
  const counts = new Map();
  for (const { fullName, file } of skipped) {
    const reason = REASON.exec(fullName)?.[1] ?? file;
    counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  return [...counts].map(([reason, tests]) => ({ reason, tests })).toSorted((a, b) => b.tests - a.tests);
}
