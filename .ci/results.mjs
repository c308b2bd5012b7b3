// Reads what vitest wrote of its runs as JSON.
//   node .ci/results.mjs failed-files RUN…         the files with failed tests, one to a line
//   node .ci/results.mjs summary STEPS AGAIN RUN…  the failures, what failed only at first, and as the last line "N passed, N failed"
// STEPS: how many steps failed. AGAIN: the second run of the files that failed; may be empty.
import { readFileSync } from "node:fs";

const NOT_LOADED = "(not loaded)";

const [what, ...args] = process.argv.slice(2);
if (what === "failed-files")
  for (const file of new Set(args.flatMap(failuresOf).map(({ file }) => file))) print(file);
if (what === "summary") summarize(Number(args[0]), args[1], args.slice(2));

function summarize(failedSteps, again, runs) {
  const first = runs.map((run) => ({
    passed: resultsOf(run).numPassedTests ?? 0,
    failures: failuresOf(run),
  }));
  const second = failuresOf(again);
  const ranAgain = new Set(resultsOf(again).testResults.map(({ name }) => name));
  const failsAgain = ({ file, test }) =>
    second.some((one) => one.file === file && [test, NOT_LOADED].includes(one.test));
  const isUnsteady = (failure) => ranAgain.has(failure.file) && !failsAgain(failure);
  const all = first.flatMap(({ failures }) => failures);
  const unsteady = all.filter(isUnsteady);
  const failures = all.filter((failure) => !unsteady.includes(failure));
  // Once more at the end, since of a long log often only the end is kept.
  for (const failure of unsteady)
    print(`unsteady, passed when it ran again: ${nameOf(failure)}\n${failure.message}`);
  for (const failure of failures) print(`failed: ${nameOf(failure)}\n${failure.message}`);
  // A step of tests fails with its tests, and counts for itself only when it has another reason, such as a leak.
  const withFailures = first.filter(({ failures }) => failures.length > 0).length;
  const steps = Math.max(0, failedSteps - withFailures);
  const passed = first.reduce((sum, run) => sum + run.passed, unsteady.length);
  const failed = failures.length + steps;
  print(`${passed} passed, ${failed} failed`);
  process.exitCode = failed > 0 ? 1 : 0;
}

function resultsOf(run) {
  const text = readFileSync(run, "utf8");
  return text === "" ? { testResults: [] } : JSON.parse(text);
}

function failuresOf(run) {
  return resultsOf(run).testResults.flatMap(({ name: file, status, message, assertionResults }) => {
    // A test file that cannot be loaded holds no test that could be counted.
    if (status === "failed" && assertionResults.length === 0)
      return [{ file, test: NOT_LOADED, message: shortened(String(message)) }];
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

function shortened(text) {
  return text.length > 3000 ? `${text.slice(0, 3000)}…` : text;
}

function print(text) {
  process.stdout.write(`${text}\n`);
}
