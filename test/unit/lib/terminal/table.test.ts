import { describe, expect, it } from "vitest";
import { displayWidth, fitWidth } from "../../../../src/lib/terminal/display-width.js";
import { fitRows, formatTable } from "../../../../src/lib/terminal/table.js";

describe("formatTable", () => {
  it("aligns columns and leaves no blanks at the ends of lines", () => {
    expect(
      formatTable([
        ["NAME", "STATE", "WHY"],
        ["shell", "on", ""],
      ]),
    ).toBe("NAME   STATE  WHY\nshell  on\n");
  });

  it("wraps nothing on a terminal that does not know its width, as a serial line", () => {
    const rows = [["ok", "disk", "there is enough of it left"]];
    expect(formatTable(rows, { columns: 0 })).toBe("ok  disk  there is enough of it left\n");
  });

  it("counts wide characters and colours as they are seen", () => {
    expect(
      formatTable([
        ["漢字", "x"],
        ["\x1b[32mok\x1b[0m", "y"],
      ]),
    ).toBe("漢字  x\n\x1b[32mok\x1b[0m    y\n");
  });

  it("goes on below where the last column does not fit, and nowhere else", () => {
    const rows = [
      ["ok", "disk", "\x1b[32mthere\x1b[0m is enough of it left"],
      ["", "", "漢字 漢字 漢字 漢字 漢字"],
      ["x", "short"],
    ];
    expect(formatTable(rows, { columns: 31 })).toBe(
      [
        "ok  disk   \x1b[32mthere\x1b[0m is enough of",
        "           it left",
        "           漢字 漢字 漢字 漢字",
        "           漢字",
        "x   short",
        "",
      ].join("\n"),
    );
  });

  it("puts cells below each other where the last column would have hardly any room", () => {
    const rows = [
      ["TOOL", "STATE", "WHY"],
      ["read_file", "off", "the model's family has no use for it"],
      ["", "", "漢字 漢字 漢字 漢字 漢字"],
    ];
    expect(formatTable(rows, { columns: 24 })).toBe(
      [
        "TOOL  STATE  WHY",
        "read_file  off",
        "  the model's family has",
        "  no use for it",
        "  漢字 漢字 漢字 漢字",
        "  漢字",
        "",
      ].join("\n"),
    );
    // Not where every row fits as it is.
    const narrow = [
      ["ab", "c"],
      ["defgh", "i"],
    ];
    expect(formatTable(narrow, { columns: 8 })).toBe(formatTable(narrow));
  });

  it("keeps every row on one line and lets no cell act on the terminal", () => {
    expect(formatTable([["a\nb\x1b[2J\x07", "c"]])).toBe("a␊b␇  c\n");
  });
});

describe("fitRows", () => {
  const rows = [
    ["ID", "SIZE", "PLACE", "PROMPT"],
    ["1", "10 KiB", "/home", "漢字 and what else there is to say"],
  ];
  const expendable = ["SIZE", "PLACE"];

  it("leaves out no more than it must for the last column, and cuts that", () => {
    expect(fitRows(rows, { columns: 80, expendable })).toEqual(rows);
    expect(fitRows(rows, { columns: 32, expendable })).toEqual([
      ["ID", "PLACE", "PROMPT"],
      ["1", "/home", "漢字 and what else t…"],
    ]);
    expect(fitRows(rows, { columns: 12, expendable })).toEqual([
      ["ID", "PROMPT"],
      ["1", "漢字 an…"],
    ]);
  });

  it("cuts nothing where a cut would leave nothing to read", () => {
    expect(fitRows(rows, { columns: 8, expendable })).toEqual([
      ["ID", "PROMPT"],
      ["1", "漢字 and what else there is to say"],
    ]);
  });

  it("makes rows that are no wider than the terminal", () => {
    for (const columns of [12, 24, 32, 33, 40, 50])
      for (const line of formatTable(fitRows(rows, { columns, expendable })).trimEnd().split("\n"))
        expect(displayWidth(line)).toBeLessThanOrEqual(columns);
  });
});

describe("displayWidth", () => {
  it.each([
    ["abc", 3],
    ["é", 1],
    ["e\u0301", 1],
    ["漢字", 4],
    ["👍", 2],
    ["ｈ", 2],
    ["ｱ", 1],
    ["ㄅ", 2],
    ["ꀀ", 2],
    ["\u{1f1e9}\u{1f1ea}", 2],
    ["\x1b[1;31mred\x1b[0m", 3],
    ["", 0],
  ])("%j takes %d columns", (text, columns) => {
    expect(displayWidth(text)).toBe(columns);
  });
});

describe("fitWidth", () => {
  it("leaves a text that fits", () => {
    expect(fitWidth("abc", 3)).toBe("abc");
  });

  it("marks a cut, within the columns, and never cuts a wide character in two", () => {
    expect(fitWidth("abcdef", 4)).toBe("abc…");
    expect(fitWidth("漢字漢字", 4)).toBe("漢…");
    expect(fitWidth("abc", 0)).toBe("");
  });
});
