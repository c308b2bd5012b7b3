import { describe, expect, it } from "vitest";
import {
  estimateText,
  mcnemar,
  meanDifference,
  meanReward,
  passEstimates,
  studentQuantile,
} from "../../../../src/batch/report/statistics.js";
import { randomNumbers, shuffled } from "../../../../src/lib/random-numbers.js";

describe("Student's quantile", () => {
  it.each([
    [1, 12.706],
    [2, 4.303],
    [3, 3.182],
    [4, 2.776],
    [5, 2.571],
    [10, 2.228],
    [30, 2.042],
    [100, 1.984],
    [10_000, 1.96],
  ])("with %d degrees of freedom is %d, as the tables say", (degrees, expected) => {
    expect(studentQuantile(degrees)).toBeCloseTo(expected, 2);
  });
});

describe("the mean reward", () => {
  it("counts each task the same, however many attempts it has", () => {
    expect(meanReward([[1, 1, 1, 1], [0]])?.value).toBe(0.5);
  });

  it("has an interval over tasks, which more attempts at the same tasks do not narrow", () => {
    const once = meanReward([[1], [0], [1], [1]]);
    const often = meanReward([
      [1, 1, 1],
      [0, 0, 0],
      [1, 1, 1],
      [1, 1, 1],
    ]);
    expect(often).toEqual(once);
    // 0.75 ± 3.182 · 0.25, of which only shares are possible
    expect(once).toEqual({ value: 0.75, low: 0, high: 1 });
  });

  it("goes beyond 0 and 1 where rewards do", () => {
    const tenfold = meanReward([[10], [0], [10], [10]]);
    expect(tenfold?.low).toBeCloseTo(-0.456, 2);
    expect(tenfold?.high).toBeCloseTo(15.456, 2);
  });

  it("has Wilson's interval where all tasks have the same", () => {
    const all = meanReward(Array.from({ length: 10 }, () => [1]));
    expect(all).toMatchObject({ value: 1, high: 1 });
    expect(all?.low).toBeCloseTo(0.7225, 3);
    expect(meanReward([[0], [0]])?.high).toBeCloseTo(0.6576, 3);
    expect(meanReward([[0.5], [0.5]])).toEqual({ value: 0.5, low: null, high: null });
  });

  it("has no interval for one task, and is nothing without rewards", () => {
    expect(meanReward([[1, 0]])).toEqual({ value: 0.5, low: null, high: null });
    expect(meanReward([[], []])).toBeNull();
  });
});

describe("pass@k and pass^k", () => {
  /** By drawing all sets of k attempts. */
  function drawn(scored: number, passed: number, k: number): { any: number; all: number } {
    let [sets, any, all] = [0, 0, 0];
    for (let set = 0; set < 2 ** scored; set++) {
      const members = Array.from({ length: scored }, (_, index) => index).filter(
        (index) => (set >> index) & 1,
      );
      if (members.length !== k) continue;
      const passes = members.filter((index) => index < passed).length;
      sets++;
      if (passes > 0) any++;
      if (passes === k) all++;
    }
    return { any: any / sets, all: all / sets };
  }

  it("are the shares of all sets of k attempts", () => {
    for (let scored = 1; scored <= 6; scored++) {
      for (let passed = 0; passed <= scored; passed++) {
        for (const { k, passAt, passAll } of passEstimates([{ scored, passed }])) {
          const { any, all } = drawn(scored, passed, k);
          expect(passAt.value, `${passed} of ${scored}, k ${k}`).toBeCloseTo(any, 12);
          expect(passAll.value, `${passed} of ${scored}, k ${k}`).toBeCloseTo(all, 12);
        }
      }
    }
  });

  it("leave out tasks with fewer than k scored attempts", () => {
    const estimates = passEstimates([
      { scored: 4, passed: 4 },
      { scored: 2, passed: 0 },
      { scored: 0, passed: 0 },
    ]);
    expect(estimates.map(({ k, tasks }) => [k, tasks])).toEqual([
      [1, 2],
      [2, 2],
      [3, 1],
      [4, 1],
    ]);
    expect(estimates.map(({ passAt }) => passAt.value)).toEqual([0.5, 0.5, 1, 1]);
  });

  it("have the same interval each time, around the value", () => {
    const tasks = Array.from({ length: 20 }, (_, index) => ({ scored: 2, passed: index % 3 }));
    const first = passEstimates(tasks);
    expect(passEstimates(tasks)).toEqual(first);
    for (const { passAt } of first) {
      expect(passAt.low).toBeLessThan(passAt.value);
      expect(passAt.high).toBeGreaterThan(passAt.value);
    }
  });

  it("are uncertain even where all tasks pass", () => {
    const [one] = passEstimates(Array.from({ length: 10 }, () => ({ scored: 1, passed: 1 })));
    expect(one?.passAt).toEqual(meanReward(Array.from({ length: 10 }, () => [1])));
  });

  it("of very many tasks have an interval without resampling that is as good as with it", () => {
    const tasks = (count: number) =>
      Array.from({ length: count }, (_, index) => ({ scored: 1, passed: index % 2 }));
    const [[resampled], [computed]] = [passEstimates(tasks(1000)), passEstimates(tasks(1002))];
    expect(computed?.passAt.low).toBeCloseTo(resampled?.passAt.low ?? 0, 2);
    expect(computed?.passAt.high).toBeCloseTo(resampled?.passAt.high ?? 0, 2);
  });

  it("are nothing without scored attempts", () => {
    expect(passEstimates([{ scored: 0, passed: 0 }])).toEqual([]);
  });
});

describe("the difference between two runs", () => {
  it("has Student's interval over the tasks", () => {
    // Student's quantile for nine degrees of freedom is 2.262.
    expect(meanDifference([1, 0, 0, 0, 1, 0, -1, 0, 1, 0])).toEqual({
      value: 0.2,
      low: expect.closeTo(-0.2524, 3),
      high: expect.closeTo(0.6524, 3),
    });
  });

  it("has no interval where there is no spread, and is nothing without tasks", () => {
    expect(meanDifference([0, 0, 0])).toEqual({ value: 0, low: null, high: null });
    expect(meanDifference([])).toBeNull();
  });
});

describe("McNemar's test", () => {
  it.each([
    [0, 0, 1],
    [1, 0, 1],
    [5, 0, 0.0625],
    [10, 0, 0.001953125],
    [8, 2, 0.109375],
    [2, 8, 0.109375],
    [3, 3, 1],
  ])("of %d gained and %d lost is %d", (gained, lost, expected) => {
    expect(mcnemar({ gained, lost })).toBeCloseTo(expected, 9);
  });

  it("is near the exact value where that would underflow", () => {
    expect(mcnemar({ gained: 1050, lost: 950 })).toBeCloseTo(0.0268, 3);
    expect(mcnemar({ gained: 2000, lost: 0 })).toBeCloseTo(0, 9);
  });
});

describe("the intervals of a run", () => {
  it("are the same in whatever order its tasks come", () => {
    const tasks = Array.from({ length: 30 }, (_, index) => ({ scored: 7, passed: (index * index) % 8 }));
    const rewards = Array.from({ length: 30 }, (_, index) => [0.1 * (index % 7), 1 / (index + 1)]);
    const orders = [0, 1, 2].map((seed) => randomNumbers(seed));
    for (const random of orders) {
      expect(passEstimates(shuffled(tasks, random))).toEqual(passEstimates(tasks));
      expect(meanReward(shuffled(rewards, random))).toEqual(meanReward(rewards));
      expect(meanDifference(shuffled(rewards.flat(), random))).toEqual(meanDifference(rewards.flat()));
    }
  });
});

describe("an estimate in words", () => {
  it("has its interval, and says when there are few tasks", () => {
    const estimate = { value: 1, low: 0.342, high: 1 };
    expect(estimateText(estimate, 2)).toBe("1.000 (95 % interval 0.342–1.000; 2 tasks are few)");
    expect(estimateText(estimate, 50)).toBe("1.000 (95 % interval 0.342–1.000)");
    expect(estimateText({ value: 0.5, low: null, high: null }, 1)).toBe("0.500");
  });
});
