import { describe, expect, it } from "vitest";
import { summarise } from "../../../../src/batch/report/summary.js";
import { outcomeOf, type PassKind } from "../../../../src/batch/runs/results/attempt-outcome.js";
import type { AttemptResult } from "../../../../src/batch/runs/results/attempt-result.js";
import { finalText, taskRows } from "../../../../src/cli/batch/summary-text.js";
import { playedBatch, playedResult } from "../../../support/played-attempts.js";

const summaryOf = (attempts: number, ...results: [Partial<AttemptResult>, PassKind | null][]) =>
  summarise(
    playedBatch(2, { attempts }),
    results.map(([given, passKind]) => ({ ...outcomeOf(playedResult(given)), passKind })),
  );

describe("what a run gave", () => {
  const summary = summaryOf(
    2,
    [{ reward: 1 }, "separate"],
    [{ attempt: 2, reward: 1 }, "shared-outside"],
    [{ task: "task-01", reward: 1 }, "shared"],
    [{ task: "task-01", attempt: 2, reward: 0 }, null],
  );

  it("tells passes apart, in the table and below it", () => {
    expect(taskRows(summary).map((row) => row.slice(2, 4))).toEqual([
      ["PASSED", "HOW"],
      ["2/2", "1 separate, 1 outside"],
      ["1/2", "1 shared"],
    ]);
    expect(finalText(summary, { stop: null })).toContain(
      "passed: 1 separate, 1 shared and clean, 1 shared, resting on changes outside of the work\n",
    );
  });

  it("has intervals that are named, and says that tasks are few", () => {
    expect(finalText(summary, { stop: null })).toMatch(
      /^pass@1 0\.750 \(95 % interval [0-9.]+–[0-9.]+; 2 tasks are few\)$/m,
    );
  });

  it("says so if nothing passed, since the exit status does not", () => {
    const none = summaryOf(1, [{ reward: 0 }, null], [{ task: "task-01", reward: 0 }, null]);
    expect(finalText(none, { stop: null })).toContain(
      "no attempt passed; the exit status tells that only with",
    );
    expect(finalText(summary, { stop: null })).not.toContain("no attempt passed");
  });
});
