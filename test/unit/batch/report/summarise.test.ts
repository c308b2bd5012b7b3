import { describe, expect, it } from "vitest";
import { summarise, summarySchema } from "../../../../src/batch/report/summary.js";
import { outcomeOf } from "../../../../src/batch/runs/results/attempt-outcome.js";
import type { AttemptResult } from "../../../../src/batch/runs/results/attempt-result.js";
import { engineGone, infrastructure, playedBatch, playedResult } from "../../../support/played-attempts.js";

const outcomes = (...given: Partial<AttemptResult>[]) => given.map((one) => outcomeOf(playedResult(one)));

describe("the summary of a run", () => {
  it("counts only attempts with a score, and the others apart", () => {
    const summary = summarise(
      playedBatch(3, { attempts: 2 }),
      outcomes(
        { attempt: 1, reward: 1 },
        { attempt: 2, ...infrastructure },
        { task: "task-01", reward: 0.5 },
        { task: "task-01", attempt: 2, status: "unscored", reward: null },
      ),
    );
    expect(summary.attempts).toEqual({
      planned: 6,
      scored: 2,
      passed: 1,
      unscored: 1,
      infrastructure: 1,
      missing: 2,
    });
    expect(summary.reward?.value).toBe(0.75);
    expect(summary.failures).toEqual({ "engine-gone": 1, "no-grade": 1 });
    expect(summary.perTask).toMatchObject([
      { task: "task-00", reward: 1, scored: 1, passed: 1, infrastructure: 1, missing: 0 },
      { task: "task-01", reward: 0.5, scored: 1, passed: 0, unscored: 1, missing: 0 },
      { task: "task-02", reward: null, scored: 0, missing: 2 },
    ]);
    expect(summarySchema.parse(JSON.parse(JSON.stringify(summary)))).toEqual(summary);
  });

  it("adds up what was used, and says when its cost is unknown", () => {
    const batch = playedBatch(2);
    const usage = { ...playedResult().usage, costUsd: null };
    expect(summarise(batch, outcomes({}, { task: "task-01" })).usage).toMatchObject({
      inputTokens: 200,
      costUsd: 0.5,
    });
    expect(summarise(batch, outcomes({}, { task: "task-01", usage })).usage.costUsd).toBeNull();
  });

  it("has the times of the first start and the last end, and the tries before", () => {
    const tries = [
      { startedAt: "2026-11-23T07:00:00.000Z", endedAt: "2026-11-23T07:00:01.000Z", failure: engineGone },
    ];
    const summary = summarise(
      playedBatch(2),
      outcomes(
        { startedAt: "2026-11-23T09:00:00.000Z", endedAt: "2026-11-23T09:00:09.000Z" },
        { task: "task-01", tries },
      ),
    );
    expect(summary).toMatchObject({
      startedAt: "2026-11-23T08:00:00.000Z",
      endedAt: "2026-11-23T09:00:09.000Z",
      tries: 1,
    });
  });

  it("of a run without results is whole too", () => {
    const summary = summarise(playedBatch(1), []);
    expect(summary).toMatchObject({ reward: null, passes: [], startedAt: null, attempts: { missing: 1 } });
  });
});
