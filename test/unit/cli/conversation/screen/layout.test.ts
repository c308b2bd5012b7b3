import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { draftOf, insertPaste, insertText } from "../../../../../src/cli/conversation/input/draft.js";
import { layoutDraft, wrapText } from "../../../../../src/cli/conversation/screen/text-layout.js";
import { displayWidth } from "../../../../../src/lib/terminal/display-width.js";
import {
  appendOutput,
  emptyFold,
  foldOf,
  keptLines,
  lastLines,
  lineCountOf,
} from "../../../../../src/sandbox/output/line-fold.js";

describe("wrapping", () => {
  it.each([
    ["short", 10, ["short"]],
    ["two words", 5, ["two", "words"]],
    ["unbreakable", 4, ["unbr", "eaka", "ble"]],
    ["a\n\nb", 10, ["a", "", "b"]],
    ["\tin", 10, ["    in"]],
    ["日本語です", 4, ["日本", "語で", "す"]],
    ["", 10, [""]],
  ])("breaks %j at %i columns", (text, columns, rows) => {
    expect(wrapText(text, columns)).toEqual(rows);
  });

  it("keeps every word, and no row is wider than the screen", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "grapheme", maxLength: 200 }),
        fc.integer({ min: 10, max: 40 }),
        (text, columns) => {
          const rows = wrapText(text, columns);
          expect(rows.join("").replaceAll(/\s/g, "")).toBe(text.replaceAll(/\s/g, ""));
          for (const row of rows) expect(displayWidth(row)).toBeLessThanOrEqual(columns);
        },
      ),
    );
  });
});

describe("a draft on the screen", () => {
  const at = (text: string, cursor = text.length) => ({ ...draftOf(text), cursor });

  it("shows the cursor where the next character goes", () => {
    expect(layoutDraft(at("abc", 1), { columns: 10, maxRows: 5 }).cursor).toEqual({ row: 0, column: 1 });
    expect(layoutDraft(at("abc\nd"), { columns: 10, maxRows: 5 }).cursor).toEqual({ row: 1, column: 1 });
    expect(layoutDraft(at("日本"), { columns: 10, maxRows: 5 }).cursor).toEqual({ row: 0, column: 4 });
  });

  it("goes on in the next row where one is full", () => {
    const full = layoutDraft(at("abcde"), { columns: 5, maxRows: 5 });
    expect(full).toMatchObject({ rows: ["abcde", ""], cursor: { row: 1, column: 0 } });
    expect(layoutDraft(at("abcdef"), { columns: 5, maxRows: 5 }).rows).toEqual(["abcde", "f"]);
  });

  it("shows signs for what would act on a terminal", () => {
    const { rows } = layoutDraft(at("a\x1b[2J\u202eb\tc"), { columns: 40, maxRows: 5 });
    expect(rows.join("")).toBe("a␛[2J<U+202E>b    c");
  });

  it("shows an element as its label, with the cursor behind it, and cut where it is wider than the screen", () => {
    const draft = insertPaste(insertText(draftOf("see "), ""), "line\n".repeat(30));
    const wide = layoutDraft(draft, { columns: 40, maxRows: 5 });
    expect(wide.rows).toEqual(["see [30 lines pasted]"]);
    expect(wide.cursor).toEqual({ row: 0, column: 21 });
    const narrow = layoutDraft(draft, { columns: 10, maxRows: 5 });
    expect(narrow.rows).toEqual(["see ", "[30 lines…", ""]);
    expect(narrow.cursor).toEqual({ row: 2, column: 0 });
  });

  it("is a window around the cursor, however long it is", () => {
    const text = Array.from({ length: 50_000 }, (_, n) => `line ${n}`).join("\n");
    const { rows, cursor, ...more } = layoutDraft(at(text, text.indexOf("line 25000") + 4), {
      columns: 40,
      maxRows: 6,
    });
    expect(rows).toHaveLength(6);
    expect(rows[cursor.row]).toBe("line 25000");
    expect(more).toEqual({ hasMoreAbove: true, hasMoreBelow: true });
  });

  it("never has more rows than there is room, and the cursor is in it", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "grapheme", maxLength: 300 }),
        fc.nat(300),
        fc.integer({ min: 10, max: 30 }),
        (text, cursor, columns) => {
          const layout = layoutDraft(at(text, Math.min(cursor, text.length)), { columns, maxRows: 4 });
          expect(layout.rows.length).toBeLessThanOrEqual(4);
          expect(layout.cursor.row).toBeLessThan(layout.rows.length);
          expect(layout.cursor.column).toBeLessThanOrEqual(columns);
        },
      ),
    );
  });
});

describe("a folded output", () => {
  it("is the same however it came", () => {
    const text = Array.from({ length: 30 }, (_, n) => `line ${n}\n`).join("");
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 20 }), { maxLength: 40 }), (sizes) => {
        let fold = emptyFold;
        let at = 0;
        for (const size of sizes) {
          fold = appendOutput(fold, text.slice(at, at + size));
          at += size;
        }
        expect(appendOutput(fold, text.slice(at))).toEqual(foldOf(text));
      }),
    );
  });

  it("knows its last lines and how many come before", () => {
    expect(lastLines(foldOf("a\nb\nc\nd"), 2)).toEqual({ lines: ["c", "d"], hiddenLines: 2 });
    expect(lastLines(foldOf("a\n"), 2)).toEqual({ lines: ["a"], hiddenLines: 0 });
    expect(lineCountOf(foldOf("a\nb"))).toBe(2);
  });

  it("keeps both ends of a long one, counts all of it, and stays small", () => {
    let fold = emptyFold;
    const chunk = `${"x".repeat(99)}\n`.repeat(1000);
    for (let round = 0; round < 200; round++) fold = appendOutput(fold, chunk);
    fold = appendOutput(fold, "y".repeat(5_000_000));
    const { head, missingLines, tail } = keptLines(fold);
    expect(head.length + missingLines + tail.length).toBe(200_001);
    expect(missingLines).toBeGreaterThan(199_000);
    expect(JSON.stringify(fold).length).toBeLessThan(200_000);
    expect(tail.at(-1)?.at(-1)).toBe("…");
  });
});
