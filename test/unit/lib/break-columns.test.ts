import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { breakColumns } from "../../../src/lib/break-columns.js";
import { displayWidth } from "../../../src/lib/display-width.js";
import { processorClock } from "../../support/processor-clock.js";

const family = "👩‍👩‍👧‍👦";

describe("breaking a text into columns", () => {
  it("loses nothing and keeps what belongs together, wherever the text is looked at in pieces", () => {
    const unit = fc.constantFrom("a", "界", family, "e\u0301", " ", "\u{1f1e9}\u{1f1ea}");
    fc.assert(
      fc.property(
        fc.array(unit, { minLength: 300, maxLength: 900 }),
        fc.integer({ min: 2, max: 100 }),
        (units, columns) => {
          const rows = breakColumns(units.join(""), columns);
          expect(rows.join("")).toBe(units.join(""));
          for (const row of rows) {
            expect(displayWidth(row)).toBeLessThanOrEqual(Math.max(columns, displayWidth(family)));
            expect(row).not.toMatch(/^[\u0301\u200d]|\u200d$/u);
          }
        },
      ),
      { numRuns: 50 },
    );
  });

  it.each([
    ["letters", "x"],
    ["marks on one letter", "\u0301"],
    ["signs of two halves", "😀"],
  ])(
    "takes no longer than its length asks for, of 200 000 %s too",
    (_what, unit) => {
      const usedMs = processorClock();
      const rows = breakColumns(unit.repeat(200_000), 80);
      expect(rows.join("").length).toBe(200_000 * unit.length);
      expect(usedMs()).toBeLessThan(10_000);
    },
    60_000,
  );
});
