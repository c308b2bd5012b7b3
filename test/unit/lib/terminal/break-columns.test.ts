import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { breakBetweenWords, breakColumns, wrapLines } from "../../../../src/lib/terminal/break-columns.js";
import { displayWidth } from "../../../../src/lib/terminal/display-width.js";
import { repetitions, runs } from "../../../support/fuzz.js";

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
      { numRuns: runs({ short: 20, deep: 500 }) },
    );
  });

  it.each([
    ["letters", "x"],
    ["marks on one letter", "\u0301"],
    ["signs of two halves", "😀"],
  ])("loses none of many thousand %s", (_what, unit) => {
    const many = repetitions({ short: 50_000, deep: 200_000 });
    const rows = breakColumns(unit.repeat(many), 80);
    expect(rows.join("").length).toBe(many * unit.length);
  });
});

describe("breaking a text between its words", () => {
  it("loses nothing, is no wider, and breaks a word only where it is wider than a row", () => {
    const word = fc.constantFrom(
      "a",
      "word",
      "漢字",
      "twelve-signs",
      "",
      "a-word-that-is-longer-than-a-row-can-be",
    );
    fc.assert(
      fc.property(fc.array(word, { maxLength: 60 }), fc.integer({ min: 12, max: 30 }), (words, columns) => {
        const text = words.join(" ");
        const rows = breakBetweenWords(text, columns);
        expect(rows.join("")).toBe(text);
        for (const row of rows) expect(displayWidth(row)).toBeLessThanOrEqual(columns);
        const short = (parts: string[]) => parts.filter((part) => part !== "" && displayWidth(part) <= 12);
        const whole = rows.flatMap((row) => row.split(" "));
        for (const each of new Set(short(words)))
          expect(short(whole).filter((part) => part === each).length).toBeGreaterThanOrEqual(
            words.filter((part) => part === each).length,
          );
      }),
    );
  });

  it("loses none of many thousand words", () => {
    const many = repetitions({ short: 15_000, deep: 60_000 });
    expect(breakBetweenWords("ab ".repeat(many), 40).join("")).toHaveLength(3 * many);
  });

  it("indents what goes on below as its line is, and leaves a longer word alone", () => {
    const path = `/home/${"x".repeat(30)}`;
    expect(wrapLines(`short\n  one two three four five\n${path} is gone\n`, 16)).toBe(
      `short\n  one two three\n  four five\n${path}\nis gone\n`,
    );
    const wide = wrapLines(`${" ".repeat(10_000)}${"a ".repeat(1000)}`, 40);
    expect(wide.length).toBeLessThan(100_000);
  });
});
