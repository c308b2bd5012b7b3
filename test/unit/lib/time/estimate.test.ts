import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Estimate, leftText, SteadyTime } from "../../../../src/lib/time/estimate.js";

const MiB = 1024 ** 2;

/** Bytes at this rate, in pieces of 100 ms. */
function copied(
  estimate: Estimate,
  {
    from,
    to,
    perSecond,
    total,
    before = 0,
  }: { from: number; to: number; perSecond: number; total: number; before?: number },
): void {
  for (let now = from; now <= to; now += 100)
    estimate.update({ done: Math.min(total, before + ((now - from) / 1000) * perSecond), total }, now);
}

describe("the estimate of bytes", () => {
  it("is unknown without a total, before two seconds, and while nothing was copied", () => {
    const estimate = new Estimate("bytes", 0);
    estimate.update({ done: 10 * MiB, total: null }, 5000);
    expect(estimate.leftMs(5000)).toBeNull();
    expect(estimate.text(5000)).toBe("10 MiB");
    const early = new Estimate("bytes", 0);
    early.update({ done: 10 * MiB, total: 100 * MiB }, 1500);
    expect(early.leftMs(1500)).toBeNull();
    expect(early.text(1500)).toBe("10 MiB of 100 MiB");
    const idle = new Estimate("bytes", 0);
    idle.update({ done: 0, total: 100 * MiB }, 60_000);
    expect(idle.leftMs(60_000)).toBeNull();
  });

  it("is what the rest takes at the same rate", () => {
    const estimate = new Estimate("bytes", 0);
    copied(estimate, { from: 0, to: 10_000, perSecond: 10 * MiB, total: 500 * MiB });
    expect(estimate.leftMs(10_000)).toBeGreaterThan(35_000);
    expect(estimate.leftMs(10_000)).toBeLessThan(45_000);
    expect(estimate.text(10_000)).toBe("100 MiB of 500 MiB, about 40 s left");
  });

  it("follows a rate that changes, within its memory", () => {
    const estimate = new Estimate("bytes", 0);
    const total = 10_000 * MiB;
    copied(estimate, { from: 0, to: 60_000, perSecond: 10 * MiB, total });
    const before = estimate.leftMs(60_000) ?? 0;
    copied(estimate, { from: 60_100, to: 120_000, perSecond: 50 * MiB, total, before: 600 * MiB });
    expect(estimate.leftMs(120_000)).toBeLessThan(before / 4);
  });

  it("grows while nothing arrives", () => {
    const estimate = new Estimate("bytes", 0);
    copied(estimate, { from: 0, to: 10_000, perSecond: 10 * MiB, total: 500 * MiB });
    const before = estimate.leftMs(10_000) ?? 0;
    expect(estimate.leftMs(30_000)).toBeGreaterThan(2 * before);
  });
});

describe("the estimate of steps", () => {
  it("begins once two have ended, and is that the others take as long", () => {
    const estimate = new Estimate("steps", 0);
    estimate.update({ done: 1, total: 12 }, 1000);
    expect(estimate.leftMs(1000)).toBeNull();
    expect(estimate.text(1000)).toBe("1 of 12");
    estimate.update({ done: 2, total: 12 }, 60_000);
    expect(estimate.leftMs(60_000)).toBe(300_000);
    expect(estimate.leftMs(70_000)).toBe(290_000);
    expect(estimate.text(60_000)).toBe("2 of 12, about 5 min left");
  });

  it("is never less than nothing, and says nothing then", () => {
    const estimate = new Estimate("steps", 0);
    estimate.update({ done: 3, total: 4 }, 3000);
    expect(estimate.leftMs(60_000)).toBe(0);
    expect(estimate.text(60_000)).toBe("3 of 4");
  });
});

describe("the time left as it is shown", () => {
  it.each([
    [0, ""],
    [999, ""],
    [1000, "a few seconds left"],
    [9999, "a few seconds left"],
    [10_000, "about 10 s left"],
    [44_000, "about 40 s left"],
    [54_999, "about 50 s left"],
    [55_000, "about 1 min left"],
    [245_000, "about 4 min left"],
    [3_600_000, "about 1 h left"],
    [7_900_000, "about 2 h 10 min left"],
  ])("for %d ms is %j", (ms, text) => {
    expect(leftText(ms)).toBe(text);
  });

  it("counts down by itself, and does not follow what differs a little", () => {
    const shown = new SteadyTime();
    expect(shown.text(240_000, 0)).toBe("about 4 min left");
    // 20 % more at each look would be shown; 10 % is not.
    expect(shown.text(264_000 - 60_000, 60_000)).toBe("about 3 min left");
    expect(shown.text(216_000 - 60_000, 60_000)).toBe("about 3 min left");
    expect(shown.text(600_000, 60_000)).toBe("about 10 min left");
    expect(shown.text(null, 60_000)).toBe("");
  });

  it("never jumps by more than a fifth while the estimates do not", () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: 0.9, max: 1.1, noNaN: true }), { minLength: 5, maxLength: 60 }),
        (noise) => {
          const shown = new SteadyTime();
          const texts = noise.map((factor, at) => shown.text((600_000 - at * 1000) * factor, at * 1000));
          const minutes = texts.map((text) => Number(/(\d+) min/.exec(text)?.[1]));
          for (const [at, now] of minutes.entries())
            if (at > 0) expect(now).toBeLessThanOrEqual(minutes[at - 1] as number);
        },
      ),
    );
  });
});
