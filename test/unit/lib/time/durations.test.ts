import { describe, expect, it } from "vitest";
import { formatDuration, parseDuration } from "../../../../src/lib/time/durations.js";

describe("formatDuration", () => {
  it.each([
    [0.42, "0.4 ms"],
    [9.96, "10 ms"],
    [350, "350 ms"],
    [999.6, "1.0 s"],
    [3_200, "3.2 s"],
    [59_960, "1 m 00 s"],
    [125_000, "2 m 05 s"],
    [4_800_000, "1 h 20 m"],
  ])("%d ms is %s", (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });
});

describe("parseDuration", () => {
  it.each([
    ["90", 90_000],
    ["1.5", 1_500],
    ["250ms", 250],
    ["30s", 30_000],
    ["2m", 120_000],
    ["0.5h", 1_800_000],
  ])("%s is %d ms", (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  it.each(["", "0", "0.0001", "-1", "1,5", "1 s", "2d", "s", "1e3", "Infinity", "9".repeat(40)])(
    "%j is no duration",
    (text) => {
      expect(parseDuration(text)).toBeNull();
    },
  );
});
