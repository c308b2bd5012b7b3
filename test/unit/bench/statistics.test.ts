import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Round, ratioOfQuantiles, summarize } from "../../bench/statistics.js";

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
    const between = { p10: 13, median: 25, p90: 37, p95: 38.5 };
    expect(summarize([40, 10, 30, 20])).toEqual({ count: 4, min: 10, ...between, max: 40 });
  });

  it("of one sample is that sample", () => {
    expect(summarize([7])).toEqual({ count: 1, min: 7, p10: 7, median: 7, p90: 7, p95: 7, max: 7 });
  });

  it("of nothing has no value", () => {
    expect(summarize([])).toEqual({
      count: 0,
      min: Number.NaN,
      p10: Number.NaN,
      median: Number.NaN,
      p90: Number.NaN,
      p95: Number.NaN,
      max: Number.NaN,
    });
  });

  it("is in ascending order, within the samples, and the same for any order of them", () => {
    fc.assert(
      fc.property(samples, (values) => {
        const { min, p10, median, p90, p95, max } = summarize(values);
        const all = [min, p10, median, p90, p95, max];
        expect(all).toEqual(all.toSorted((a, b) => a - b));
        expect([min, max]).toEqual([Math.min(...values), Math.max(...values)]);
        expect(summarize([...values].reverse())).toEqual(summarize(values));
      }),
    );
  });
});

describe("a ratio of medians", () => {
  it("is one of the slowest twentieths, if that is asked for", () => {
    const numerator = [...Array<number>(90).fill(1), ...Array<number>(10).fill(8)];
    const rounds = [{ numerator, denominator: Array<number>(100).fill(2) }];
    expect(ratioOfQuantiles(rounds, { fraction: 0.95 }).value).toBe(4);
    expect(ratioOfQuantiles(rounds).value).toBe(0.5);
  });

  it("is the median over all rounds divided by the other side's", () => {
    const rounds = [
      { numerator: [10, 90], denominator: [1] },
      { numerator: [20], denominator: [4, 1000] },
    ];
    expect(ratioOfQuantiles(rounds).value).toBe(5);
  });

  it("has no interval to speak of when every round says the same", () => {
    const rounds = Array.from({ length: 10 }, () => ({ numerator: [6, 6], denominator: [2, 2] }));
    expect(ratioOfQuantiles(rounds)).toEqual({ value: 3, low: 3, high: 3, confidence: 0.95 });
  });

  it("has a narrower interval with more rounds", () => {
    const widths = [5, 20, 80].map((count) => {
      const { low, high } = ratioOfQuantiles(
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
      return ratioOfQuantiles(rounds, { resamples: 200, random });
    });
    const hits = runs.filter(({ low, high }) => low <= 3 && 3 <= high);
    expect(hits.length / runs.length).toBeGreaterThan(0.9);
  });

  it("is not blurred by a machine that grows slower while both sides are measured", () => {
    const drifting = Array.from({ length: 30 }, (_, round) => ({
      numerator: [2 * (1 + round)],
      denominator: [1 + round],
    }));
    const { low, high } = ratioOfQuantiles(drifting);
    expect([low, high]).toEqual([2, 2]);
  });

  it("comes out the same for the same samples", () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ numerator: samples, denominator: samples }), { minLength: 1, maxLength: 8 }),
        (rounds) => {
          expect(ratioOfQuantiles(rounds, { resamples: 50 })).toEqual(
            ratioOfQuantiles(rounds, { resamples: 50 }),
          );
        },
      ),
      { numRuns: 30 },
    );
  });
});
