// Reads the JSON reports of vitest runs.
//   node .ci/results.mjs failed-files RUN…         prints the files with failed tests, one per line
//   node .ci/results.mjs summary STEPS RUN=AGAIN…  prints the failures, tests that failed only at first, and "N passed, N failed"
// STEPS is the number of failed steps. AGAIN is the report of the second run of the files that failed in RUN; it may be empty, or missing.
import { readFileSync } from "node:fs";
import { relative } from "node:path";

const WHOLE_FILE = "(the file)";

const [what, ...args] = process.argv.slice(2);
if (what === "failed-files")
  for (const file of new Set(args.flatMap(failuresOf).map(({ file }) => file))) print(file);
if (what === "summary") summarize(Number(args[0]), args.slice(1));

function summarize(failedSteps, runs) {
  const first = runs.map((run) => {
    const [report, again] = run.split("=");
    const failures = failuresOf(report);
    const second = resultsOf(again);
    const unsteady = failures.filter((failure) => passedIn(second, failure));
    return { passed: resultsOf(report).numPassedTests ?? 0, failures, unsteady };
  });
  const unsteady = first.flatMap((run) => run.unsteady);
  const failures = first.flatMap((run) => run.failures).filter((failure) => !unsteady.includes(failure));
  // Printed once more at the end, because often only the end of a long log is kept.
  for (const failure of unsteady)
    print(`unsteady, passed when it ran again: ${nameOf(failure)}\n${failure.message}`);
  for (const failure of failures)
    print(`failed: ${nameOf(failure)}\n${failure.message}\n  alone: ${commandOf(failure)}`);
  if (unsteady.length > 0)
    print(`${unsteady.length} unsteady: failed beside other tests and passed alone. Mend the cause.`);
  // A step with failed tests has failed because of them. Other failed steps, such as a leak check, count as one failure each.
  const withFailures = first.filter(({ failures }) => failures.length > 0).length;
  const steps = Math.max(0, failedSteps - withFailures);
  const passed = first.reduce((sum, run) => sum + run.passed, unsteady.length);
  const failed = failures.length + steps;
  print(`${passed} passed, ${failed} failed`);
  process.exitCode = failed > 0 ? 1 : 0;
}

/**
 * Whether a test passed in every project that has it, and so did its whole file. A skipped test has not passed. Other files that
 * fail again say nothing about it.
 */
function passedIn({ testResults }, { file, test }) {
  const files = testResults.filter(({ name }) => name === file);
  if (files.some(({ status }) => status !== "passed")) return false;
  const tests = files.flatMap(({ assertionResults }) => assertionResults);
  const same = test === WHOLE_FILE ? tests : tests.filter(({ fullName }) => fullName === test);
  return (
    same.length > 0 &&
    same.every(({ status }) => status === "passed" || (test === WHOLE_FILE && status === "skipped"))
  );
}

/** An empty name stands for a run that did not happen. */
function resultsOf(run) {
  if (!run) return { testResults: [] };
  const text = readFileSync(run, "utf8");
  return text === "" ? { testResults: [] } : JSON.parse(text);
}

function failuresOf(run) {
  return resultsOf(run).testResults.flatMap(({ name: file, status, message, assertionResults }) => {
    // A file that cannot be loaded, or whose clean-up fails, has failed although none of its tests has.
    if (status === "failed" && !assertionResults.some((test) => test.status === "failed"))
      return [{ file, test: WHOLE_FILE, message: shortened(String(message)) }];
    return assertionResults
      .filter((test) => test.status === "failed")
      .map(({ fullName, failureMessages }) => ({
        file,
        test: fullName,
        message: shortened(failureMessages.join("\n")),
      }));
  });
}

function nameOf({ file, test }) {
  return `${file}: ${test}`;
}

/** What a person types to run it alone. */
function commandOf({ file, test }) {
  const only = test === WHOLE_FILE ? "" : ` -t '${test.replaceAll("'", "'\\''")}'`;
  return `npx vitest run --config test/vitest.config.ts ${relative(process.cwd(), file)}${only}`;
}

function shortened(text) {
  return text.length > 3000 ? `${text.slice(0, 3000)}…` : text;
}

function print(text) {
  process.stdout.write(`${text}\n`);
}
