import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Round, ratioOfMedians, summarize } from "../../bench/statistics.js";

const samples = fc.array(fc.double({ min: 0.001, max: 1000, noNaN: true }), { minLength: 1, maxLength: 50 });

/** Rounds of five samples each that scatter around these centres. */
function scatteredRounds(
  count: number,
  { numerator, denominator, random }: { numerator: number; denominator: number; random: () => number },
): Round[] {
  const around = (centre: number) => Array.from({ length: 5 }, () => centre * (0.8 + 0.4 * random()));
  return Array.from({ length: count }, () => ({
    numerator: around(numerator),
    denominator: around(denominator),
  }));
}

function sequence(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

describe("a summary", () => {
  it("interpolates between neighbouring samples", () => {
    expect(summarize([40, 10, 30, 20])).toEqual({ count: 4, min: 10, p10: 13, median: 25, p90: 37, max: 40 });
  });

  it("of one sample is that sample", () => {
    expect(summarize([7])).toEqual({ count: 1, min: 7, p10: 7, median: 7, p90: 7, max: 7 });
  });

  it("of nothing has no value", () => {
    expect(summarize([])).toEqual({
      count: 0,
      min: Number.NaN,
      p10: Number.NaN,
      median: Number.NaN,
      p90: Number.NaN,
      max: Number.NaN,
    });
  });

  it("is in ascending order, within the samples, and the same for any order of them", () => {
    fc.assert(
      fc.property(samples, (values) => {
        const { min, p10, median, p90, max } = summarize(values);
        expect([min, p10, median, p90, max]).toEqual([min, p10, median, p90, max].sort((a, b) => a - b));
        expect([min, max]).toEqual([Math.min(...values), Math.max(...values)]);
        expect(summarize([...values].reverse())).toEqual(summarize(values));
      }),
    );
  });
});

describe("a ratio of medians", () => {
  it("is the median over all rounds divided by the other side's", () => {
    const rounds = [
      { numerator: [10, 90], denominator: [1] },
      { numerator: [20], denominator: [4, 1000] },
    ];
    expect(ratioOfMedians(rounds).value).toBe(5);
  });

  it("has no interval to speak of when every round says the same", () => {
    const rounds = Array.from({ length: 10 }, () => ({ numerator: [6, 6], denominator: [2, 2] }));
    expect(ratioOfMedians(rounds)).toEqual({ value: 3, low: 3, high: 3, confidence: 0.95 });
  });

  it("has a narrower interval with more rounds", () => {
    const widths = [5, 20, 80].map((count) => {
      const { low, high } = ratioOfMedians(
        scatteredRounds(count, { numerator: 3, denominator: 1, random: sequence(1) }),
        { resamples: 300 },
      );
      return high - low;
    });
    expect(widths).toEqual(widths.toSorted((a, b) => b - a));
  });

  it("lies within its interval about as often as the interval promises", () => {
    const runs = Array.from({ length: 100 }, (_, run) => {
      const random = sequence(run + 1);
      const rounds = scatteredRounds(20, { numerator: 3, denominator: 1, random });
      return ratioOfMedians(rounds, { resamples: 200, random });
    });
    const hits = runs.filter(({ low, high }) => low <= 3 && 3 <= high);
    expect(hits.length / runs.length).toBeGreaterThan(0.9);
  });

  it("is not blurred by a machine that grows slower while both sides are measured", () => {
    const drifting = Array.from({ length: 30 }, (_, round) => ({
      numerator: [2 * (1 + round)],
      denominator: [1 + round],
    }));
    const { low, high } = ratioOfMedians(drifting);
    expect([low, high]).toEqual([2, 2]);
  });

  it("comes out the same for the same samples", () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ numerator: samples, denominator: samples }), { minLength: 1, maxLength: 8 }),
        (rounds) => {
          expect(ratioOfMedians(rounds, { resamples: 50 })).toEqual(
            ratioOfMedians(rounds, { resamples: 50 }),
          );
        },
      ),
      { numRuns: 30 },
    );
  });
});
