import { describe, expect, it } from "vitest";
import {
  deservesRetry,
  retryPolicy,
  retryWaitMs,
  workOfNextTry,
} from "../../../../../src/batch/runs/batch/batch-settings.js";
import { engineGone, infrastructure, playedResult } from "../../../../support/played-attempts.js";

const tryOf = (failure = engineGone) => ({
  startedAt: "2026-11-23T08:00:00.000Z",
  endedAt: "2026-11-23T08:00:01.000Z",
  failure,
});

describe("a further try", () => {
  it("is for failures of the infrastructure only", () => {
    expect(deservesRetry(playedResult(infrastructure), retryPolicy())).toBe(true);
    expect(deservesRetry(playedResult({ reward: 0 }), retryPolicy())).toBe(false);
    expect(deservesRetry(playedResult({ status: "cancelled", reward: null }), retryPolicy())).toBe(false);
  });

  it("grades what an agent has left, if only the grade was lost", () => {
    const unscored = playedResult({ status: "unscored", reward: null, failure: engineGone });
    expect(deservesRetry(unscored, retryPolicy())).toBe(true);
    expect(workOfNextTry(unscored)).toBe("grade");
    expect(workOfNextTry(playedResult(infrastructure))).toBe("run");
  });

  it("is not for what cannot be graded at all, nor for what has no grade because somebody took it", () => {
    const failure = { ...engineGone, class: "ungradable" as const };
    const all = retryPolicy({ all: 100 });
    expect(deservesRetry(playedResult({ status: "unscored", reward: null, failure }), all)).toBe(false);
    expect(deservesRetry(playedResult({ status: "unscored", reward: null }), all)).toBe(false);
  });

  it("is counted by class", () => {
    const policy = retryPolicy({ all: 1, byClass: { "disk-full": 2 } });
    const full = { ...engineGone, class: "disk-full" as const };
    const triesAgain = (tries: ReturnType<typeof tryOf>[], failure = engineGone) =>
      deservesRetry(playedResult({ ...infrastructure, failure, tries }), policy);
    expect(triesAgain([tryOf(full), tryOf(full)])).toBe(true);
    expect(triesAgain([tryOf()])).toBe(false);
    expect(triesAgain([tryOf(), tryOf(full)], full)).toBe(true);
    expect(triesAgain([tryOf(full), tryOf(full)], full)).toBe(false);
  });

  it("comes twice by default, and once for an image", () => {
    expect(retryPolicy()).toMatchObject({ "engine-gone": 2, "image-failed": 1 });
    expect(retryPolicy({ all: 5 })).toMatchObject({ "engine-gone": 5, "image-failed": 5 });
  });

  it("waits longer each time, up to a minute", () => {
    expect([1, 2, 3, 20].map((tries) => retryWaitMs(tries, () => 0))).toEqual([500, 1000, 2000, 30_000]);
    expect(retryWaitMs(1, () => 0.5)).toBe(750);
  });
});
