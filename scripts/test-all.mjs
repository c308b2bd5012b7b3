// Runs everything that can be tested, part by part, and writes to test/last-runs.json on which commit each part last ran and how it ended.
//   node scripts/test-all.mjs [--list] [--again] [PART…]
// Without names it goes on where it was interrupted: a part that has passed on this commit does not run again, unless --again is given.
// Exit status: 0 if each part passed or cannot run on this machine, 1 if one failed, 130 interrupted.
import { execFileSync } from "node:child_process";
import { parseArgs } from "node:util";
import { readLastRuns, writeLastRun } from "./gate/last-runs.js";
import { PARTS } from "./gate/parts.js";
import { runPart } from "./gate/run-part.js";
import { root } from "./setup/run.js";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { list: { type: "boolean", default: false }, again: { type: "boolean", default: false } },
});

const unknown = positionals.filter((name) => PARTS.every((part) => part.name !== name));
if (unknown.length > 0) {
  process.stderr.write(
    `there is no part ${unknown.join(", ")}; there are: ${PARTS.map(({ name }) => name).join(", ")}\n`,
  );
  process.exitCode = 2;
} else if (values.list) list();
else await runAll();

function list() {
  const runs = readLastRuns();
  for (const { name, about } of PARTS)
    process.stdout.write(`${name.padEnd(12)} ${told(runs[name]).padEnd(60)} ${about}\n`);
}

async function runAll() {
  const git = (...argv) => execFileSync("git", argv, { cwd: root, encoding: "utf8" }).trim();
  const commit = git("rev-parse", "HEAD");
  const isClean = git("status", "--porcelain", "--", ":!test/last-runs.json") === "";
  const end = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"]) process.once(name, () => end.abort());
  const wanted = positionals.length > 0 ? PARTS.filter(({ name }) => positionals.includes(name)) : PARTS;
  for (const part of wanted) {
    const last = readLastRuns()[part.name];
    if (last?.commit === commit && last.outcome === "passed" && isClean && !values.again) {
      process.stdout.write(`== ${part.name}: ${told(last)}\n`);
      continue;
    }
    process.stdout.write(`== ${part.name}: ${part.about}\n`);
    const run = await runPart(part, { signal: end.signal });
    if (end.signal.aborted) {
      process.exitCode = 130;
      return;
    }
    process.stdout.write(`== ${part.name}: ${told(run)}\n`);
    if (run.outcome === "failed") process.exitCode = 1;
    if (isClean) writeLastRun(part.name, { commit, date: new Date().toISOString().slice(0, 10), ...run });
    else
      process.stdout.write(
        "   not noted in test/last-runs.json, because there are changes that are not committed\n",
      );
  }
}

function told(run) {
  if (run === undefined) return "has not run";
  const { outcome, why, passed, failed, skipped, seconds, commit, date } = run;
  const when =
    commit === undefined ? `in ${Math.ceil(seconds / 60)} min` : `on ${date}, ${commit.slice(0, 8)}`;
  const counts =
    passed === undefined ? (why ?? "") : `${passed} passed, ${failed} failed, ${skipped} skipped`;
  return `${outcome} ${when}${counts === "" ? "" : `: ${counts}`}`;
}
