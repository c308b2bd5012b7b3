// Measures how many faults the tests would notice: puts a small fault into a file, one at a time, in a copy of the project, and runs the tests
// nearest to that file. Writes every fault that no test noticed, with its place. See CONTRIBUTING.md.
import { readFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { EXECUTED_FILE, ExecutedTests, UNIT_EXECUTED_FILE } from "./executed/executed-tests.js";
import { recordExecuted } from "./executed/record.js";
import { testsOf } from "./gate/tests.js";
import { runnerMutants } from "./mutate/c-mutants.js";
import { copyProject } from "./mutate/copy.js";
import { readEquivalent, withoutEquivalent } from "./mutate/equivalent.js";
import { describeScores, describeSurvivors } from "./mutate/report.js";
import { openRunnerTests } from "./mutate/runner-tests.js";
import { drawn } from "./mutate/sample.js";
import { sourceMutants } from "./mutate/source-mutants.js";
import { TestRuns } from "./mutate/test-runs.js";
import { root } from "./setup/run.js";

const places = [
  "src/sandbox",
  "src/tools",
  "src/batch/runs",
  "images/toolbox/runner",
  "images/toolbox/runner-files",
  "images/toolbox/common",
];

const { values } = parseArgs({
  options: {
    in: { type: "string", multiple: true, default: places },
    sample: { type: "string", default: "100" },
    seed: { type: "string", default: "1" },
    tests: { type: "string", default: "12" },
    engine: { type: "boolean", default: false },
    only: { type: "string", multiple: true, default: [""] },
    again: { type: "string" },
    record: { type: "boolean", default: false },
    out: { type: "string", default: ".bench/mutation.json" },
    help: { type: "boolean", short: "h", default: false },
  },
});

const usage = `usage: node scripts/mutate.mjs [options]
  --in PLACE     a directory whose files get faults; may be repeated (default: ${places.join(", ")})
  --sample N     how many faults for each place, drawn at random (default 100; 0 is all of them)
  --seed N       which ones are drawn (default 1)
  --only TEXT    only faults whose FILE:LINE: KIND contains this; may be repeated
  --tests N      how many test files are run for a fault, the nearest first (default 12)
  --engine       run tests with containers for those that no unit test notices
  --again FILE   take what was noticed from earlier results and try only the rest of the sample again; with --engine, only
                 with containers what unit tests did not notice there
  --record       instead: run all unit tests once and note which lines each executes, which later measurements choose
                 tests by (what tests with containers execute is in ${EXECUTED_FILE})
  --out FILE     where the results are written as JSON (default .bench/mutation.json)
`;

if (values.help) process.stdout.write(usage);
else {
  const end = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"]) process.once(name, () => end.abort());
  if (values.record) await recordUnitTests(end.signal);
  else await measure(end);
}

/** They share a process, as they do otherwise. */
async function recordUnitTests(signal) {
  const tests = await testsOf("test/unit");
  const noted = await recordExecuted({ projects: ["unit"], tests, isolate: false, sides: 2, signal });
  await noted.write(UNIT_EXECUTED_FILE);
}

async function measure(end) {
  const earlier = await earlierOutcomes();
  const copy = await copyProject();
  const results = [];
  const left = {};
  try {
    for (const place of values.in) {
      const { faults, equivalentCount } = await faultsOf(place);
      left[place] = equivalentCount;
      const sample = drawn(faults, { count: Number(values.sample), seed: Number(values.seed) });
      process.stderr.write(`${place}: ${sample.length} of ${faults.length} faults\n`);
      await tryFaults(sample, { place, copy, signal: end.signal, results, earlier });
      if (end.signal.aborted) break;
    }
  } finally {
    await copy.remove();
  }
  process.stdout.write(`${describeSurvivors(results)}${describeScores(results, left)}`);
}

/** Those asked for, without those that change nothing observable. */
async function faultsOf(place) {
  const all = isRunner(place) ? await runnerMutants(place) : await sourceMutants(place);
  const equivalent = (await readEquivalent()).filter(({ file }) => file.startsWith(`${place}/`));
  const { others, stale } = withoutEquivalent(all, {
    equivalent,
    source: (file) => readFileSync(join(root, file), "utf8"),
  });
  for (const { file, line, kind } of stale)
    process.stderr.write(`scripts/mutate/equivalent.json fits no fault: ${file}: ${kind}: ${line}\n`);
  if (stale.length > 0) process.exitCode = 1;
  return {
    faults: others.filter((mutant) => values.only.some((text) => nameOf(mutant).includes(text))),
    equivalentCount: equivalent.length,
  };
}

async function tryFaults(sample, { place, copy, signal, results, earlier }) {
  const runs = new TestRuns(copy.path, {
    testCount: Number(values.tests),
    noted: { unit: await ExecutedTests.read(UNIT_EXECUTED_FILE), docker: await ExecutedTests.read() },
    signal,
  });
  const runner = isRunner(place)
    ? await openRunnerTests({ sandboxRuns: values.engine ? runs : null, signal })
    : null;
  try {
    for (const mutant of sample) {
      if (signal.aborted) return;
      const before = earlier.get(mutant.key);
      const outcome = runner ? await runner.outcomeOf(mutant) : await outcomeOf(mutant, { runs, before });
      if (outcome === "interrupted") return;
      results.push({ place, ...mutant, outcome });
      process.stderr.write(`  ${outcome}: ${nameOf(mutant)}\n`);
      await writeFile(values.out, `${JSON.stringify({ ...values, results }, null, 2)}\n`);
    }
  } finally {
    await runner?.close();
  }
}

/** `before` is what came of it in earlier results, if it was in them. */
async function outcomeOf(mutant, { runs, before }) {
  const isLeft = (one) => ["survived", "untested"].includes(one);
  const isKnown = before !== undefined && (!isLeft(before) || values.engine);
  const outcome = isKnown ? before : await runs.outcomeOf(mutant, "unit");
  if (!isLeft(outcome)) return outcome;
  if (!isKnown && (await runs.isRefusedByCompiler(mutant))) return "invalid";
  if (!values.engine) return outcome;
  const engine = await runs.outcomeOf(mutant, "docker");
  return engine === "untested" ? outcome : engine;
}

/** By the keys of the faults. */
async function earlierOutcomes() {
  if (values.again === undefined) return new Map();
  const { results } = JSON.parse(await readFile(values.again, "utf8"));
  return new Map(results.map(({ key, outcome }) => [key, outcome]));
}

function isRunner(place) {
  return place.startsWith("images/");
}

function nameOf({ file, line, kind }) {
  return `${file}:${line}: ${kind}`;
}
