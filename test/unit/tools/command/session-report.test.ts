import { describe, expect, it } from "vitest";
import { clampedPoll, clampedYield } from "../../../../src/tools/command/session-report.js";
import { timeoutOf } from "../../../../src/tools/command/shell-tools.js";

describe("how long a call waits", () => {
  it.each([
    [0, 250],
    [250, 250],
    [9999, 9999],
    [90_000, 30_000],
  ])("for output: asked for %i ms, %i ms", (asked, given) => {
    expect(clampedYield(asked)).toBe(given);
  });

  it.each([
    [0, 300_000, 5000],
    [6000, 300_000, 6000],
    [900_000, 300_000, 300_000],
    [900_000, 20_000, 20_000],
    [900_000, 1000, 5000],
  ])("when it only reads on: asked for %i ms of at most %i, %i ms", (asked, most, given) => {
    expect(clampedPoll(asked, most)).toBe(given);
  });

  it.each([
    [undefined, 10_000],
    [0, 1],
    [500, 500],
    [Number.MAX_SAFE_INTEGER, 86_400_000],
  ])("for a one-shot command: asked for %j ms, %i ms", (asked, given) => {
    expect(timeoutOf(asked)).toBe(given);
  });
});
