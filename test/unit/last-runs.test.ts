import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
// @ts-expect-error -- a plain script without types
import { overdue, readLastRuns } from "../../scripts/gate/last-runs.js";
// @ts-expect-error -- a plain script without types
import { PARTS } from "../../scripts/gate/parts.js";

const names: string[] = PARTS.map(({ name }: { name: string }) => name);

it("no part of npm run test:all is red", () => {
  expect(overdue(readLastRuns(), { names, at: 0, days: 14 }).failed).toEqual([]);
});

it("every part of npm run test:all has run in the last two weeks", (context) => {
  // The time of the commit instead of that of the machine: the same commit gives the same answer.
  const { old } = overdue(readLastRuns(), { names, at: timeOfCommit(), days: 14 });
  if (old.length > 0) context.skip(`these have not run for two weeks: npm run test:all -- ${old.join(" ")}`);
});

it("a part that failed is named, and so is one that never ran or is older", () => {
  const run = (outcome: string, date: string) => ({ outcome, date });
  const runs = {
    good: run("passed", "2026-11-20"),
    red: run("failed", "2026-11-20"),
    old: run("passed", "2026-11-01"),
  };
  const at = Date.parse("2026-11-28");
  expect(overdue(runs, { names: ["good", "red", "old", "never"], at, days: 14 })).toEqual({
    failed: ["red"],
    old: ["old", "never"],
  });
});

/** A copy of the checkout has no commits: then nothing is old. */
function timeOfCommit(): number {
  try {
    const cwd = fileURLToPath(new URL("../..", import.meta.url));
    const time = execFileSync("git", ["log", "-1", "--format=%cI"], { cwd, encoding: "utf8", stdio: "pipe" });
    return Date.parse(time.trim());
  } catch {
    return 0;
  }
}
