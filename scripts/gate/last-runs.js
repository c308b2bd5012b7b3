import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../setup/run.js";

const file = join(root, "test/last-runs.json");

/** By name of a part: `commit`, `date` and `outcome` ("passed", "failed", "skipped") of its last run, with its counts or `why`, and `seconds`. */
export function readLastRuns() {
  return JSON.parse(readFileSync(file, "utf8"));
}

export function writeLastRun(name, run) {
  const runs = { ...readLastRuns(), [name]: run };
  const sorted = Object.fromEntries(Object.entries(runs).sort(([a], [b]) => (a < b ? -1 : 1)));
  writeFileSync(file, `${JSON.stringify(sorted, null, 2)}\n`);
}

const DAY_MS = 24 * 60 * 60 * 1000;

/** What is to be said of the last runs, at a time: parts that failed, and those that have not run for so many days, or never. */
export function overdue(runs, { names, at, days }) {
  const failed = names.filter((name) => runs[name]?.outcome === "failed");
  const old = names.filter((name) => {
    const run = runs[name];
    return run === undefined || at - Date.parse(run.date) > days * DAY_MS;
  });
  return { failed, old };
}
