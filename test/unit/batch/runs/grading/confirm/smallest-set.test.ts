import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { smallestSet } from "../../../../../../src/batch/runs/grading/confirm-pass.js";

const items = (count: number) => Array.from({ length: count }, (_, index) => index);

/** Succeeds with all of the needed ones. */
function needing(needed: readonly number[], { most = Number.POSITIVE_INFINITY } = {}) {
  const asked: (readonly number[])[] = [];
  return {
    asked,
    test: async (part: readonly number[]) => {
      if (asked.length >= most) return "out-of-budget" as const;
      asked.push(part);
      return needed.every((one) => part.includes(one));
    },
  };
}

describe("the smallest set with which a test succeeds", () => {
  it("is exactly what is needed, wherever that is", async () => {
    const needs = fc.integer({ min: 1, max: 40 }).chain((count) =>
      fc.record({
        count: fc.constant(count),
        needed: fc.uniqueArray(fc.integer({ min: 0, max: count - 1 }), { minLength: 1 }),
      }),
    );
    await fc.assert(
      fc.asyncProperty(needs, async ({ count, needed }) => {
        const found = await smallestSet(items(count), needing(needed).test);
        expect(found).toEqual({ items: needed.toSorted((a, b) => a - b), isSmallest: true });
      }),
    );
  });

  it("of 128 is found in two tests for each halving if it is one", async () => {
    for (const needed of [0, 77, 127]) {
      const { asked, test } = needing([needed]);
      expect((await smallestSet(items(128), test)).items).toEqual([needed]);
      expect(asked.length).toBeLessThanOrEqual(14);
    }
  });

  it("has too much rather than too little once nothing may be asked any more, and says so", async () => {
    for (const most of [0, 1, 2, 3, 5]) {
      const { asked, test } = needing([3, 20], { most });
      const found = await smallestSet(items(32), test);
      expect(found.items).toEqual(expect.arrayContaining([3, 20]));
      expect(found.isSmallest).toBe(false);
      expect(asked).toHaveLength(most);
    }
  });
});
