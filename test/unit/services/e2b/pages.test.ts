import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { pageOf } from "../../../../src/services/e2b/pages.js";

describe("pages", () => {
  it("together have each item once, in order, whatever their size is", () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.string({ minLength: 1, maxLength: 3 }), { maxLength: 30 }),
        fc.integer({ min: 1, max: 7 }),
        fc.boolean(),
        (keys, limit, isDescending) => {
          const seen: string[] = [];
          let nextToken: string | undefined;
          do {
            const { items, next } = pageOf(keys, { keyOf: (key) => key, isDescending, limit, nextToken });
            expect(items.length).toBeLessThanOrEqual(limit);
            seen.push(...items);
            nextToken = next ?? undefined;
          } while (nextToken !== undefined);
          const sorted = keys.toSorted();
          expect(seen).toEqual(isDescending ? sorted.reverse() : sorted);
        },
      ),
    );
  });

  it("go on after an item that is gone", () => {
    const options = { keyOf: (key: string) => key, limit: 2 };
    const { next } = pageOf(["a", "b", "c", "d"], { ...options, nextToken: undefined });
    expect(pageOf(["a", "c", "d"], { ...options, nextToken: next ?? undefined }).items).toEqual(["c", "d"]);
    expect(() => pageOf(["a"], { ...options, nextToken: "no token" })).toThrow("nextToken");
  });
});
