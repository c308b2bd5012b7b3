// Notes in test/executed.json.br which lines each test with containers or whole programs executes. The check chooses tests by it.
//   node scripts/record-executed.mjs [--all] [--sides N] [TEST…]
// Runs the tests that the changes since the last time concern, and those of which nothing is known; of the others, what is known stays. --all runs every
// test, which takes most of an hour. N test files run at once (default 3), each in a marked copy of the project. Commit the sources first.
import { parseArgs } from "node:util";
import { carriedOver } from "./executed/carry-over.js";
import { ExecutedTests } from "./executed/executed-tests.js";
import { recordExecuted } from "./executed/record.js";
import { changedSince } from "./gate/change.js";
import { selectTests } from "./gate/selection.js";
import { Sources } from "./gate/sources.js";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { all: { type: "boolean", default: false }, sides: { type: "string", default: "3" } },
});

const end = new AbortController();
for (const name of ["SIGINT", "SIGTERM"]) process.once(name, () => end.abort());

const known = await ExecutedTests.read();
const paths = known.commit === null ? null : changedSince(known.commit);
const { reasons, all } = await selectTests({ paths, always: false });
const wanted = positionals.length > 0 ? positionals : values.all ? all : [...reasons.keys()];
process.stderr.write(`${wanted.length} of ${all.length} test files run\n`);
const noted = await recordExecuted({
  projects: ["docker", "e2e", "slow", "deep"],
  tests: wanted,
  sides: Number(values.sides),
  seconds: Object.fromEntries(Object.entries(known.tests).map(([test, { seconds }]) => [test, seconds])),
  signal: end.signal,
});
if (end.signal.aborted) process.exitCode = 130;
else {
  const sources = paths === null ? null : new Sources(known.commit, paths);
  await (sources === null ? noted : carriedOver(known, noted, { sources, all })).write();
  const failed = wanted.filter((test) => !noted.tests[test].passed);
  if (failed.length > 0) process.stderr.write(`not all of these passed: ${failed.join(", ")}\n`);
}
