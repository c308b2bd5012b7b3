import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { NeutralStream, neutralise, neutraliseLine } from "../../../../src/lib/terminal/terminal.js";
import { promised } from "../../../guarantees.js";
import { repetitions, runs } from "../../../support/fuzz.js";

const withColours = { colours: true };

describe("neutralise removes what would act on the terminal", () => {
  it.each([
    ["clearing the screen", "a\x1b[2Jb", "ab"],
    ["moving the cursor", "a\x1b[1;1Hb", "ab"],
    ["moving it with private parameters and intermediates", "a\x1b[?25l\x1b[>0 qb", "ab"],
    ["the window's title, ended by a bell", "a\x1b]0;x\x07b", "ab"],
    ["the window's title, ended by a string terminator", "a\x1b]2;x\x1b\\b", "ab"],
    ["the clipboard", "a\x1b]52;c;Y3VybCBldmls\x07b", "ab"],
    ["a hyperlink, but not its text", "\x1b]8;;http://evil\x1b\\here\x1b]8;;\x1b\\", "here"],
    ["a device control string", "a\x1bP1$r0m\x1b\\b", "ab"],
    ["an application command", "a\x1b_Gf=24;AAAA\x1b\\b", "ab"],
    ["a privacy message", "a\x1b^x\x1b\\b", "ab"],
    ["a start of string", "a\x1bXx\x1b\\b", "ab"],
    ["the title of screen and tmux", "a\x1bkx\x1b\\b", "ab"],
    ["a sequence in its 8-bit spelling", "a\x9b2Jb\x9d0;x\x9cc", "abc"],
    ["a reset of the terminal", "a\x1bcb", "ab"],
    ["a change of character set", "a\x1b(0b\x1b%@c", "abc"],
    ["a report of the title", "a\x1b[21tb", "ab"],
    ["an answer-back request", "a\x05b", "a␅b"],
  ])("%s", (_name, text, shown) => {
    expect(neutralise(text, withColours)).toBe(shown);
  });
});

describe("neutralise shows what stands alone", () => {
  it.each([
    ["a bell", "\x07\x07", "␇␇"],
    ["a backspace", "abc\b\b\bxyz", "abc␈␈␈xyz"],
    ["a delete and a NUL", "\x7f\0", "␡␀"],
    ["an ESC that begins nothing", "a\x1b\x1b\n", "a␛␛\n"],
    ["an ESC at the end", "a\x1b", "a␛"],
    ["a C1 character that begins nothing", "a\x85b", "a<U+0085>b"],
    ["bidi controls", "\u202eevil\u2069\u200f", "<U+202E>evil<U+2069><U+200F>"],
    ["characters without width", "pass\u200bword\ufeff\u00ad", "pass<U+200B>word<U+FEFF><U+00AD>"],
    ["invisible tags", "a\u{e0041}b", "a<U+E0041>b"],
    ["line separators", "a\u2028b", "a<U+2028>b"],
    ["a title that never ends", "\x1b]0;hidden", "␛]0;hidden"],
    ["a title cut by a newline", "\x1b]0;hidden\nseen", "␛]0;hidden\nseen"],
    ["a sequence cut by a control character", "\x1b[3\x071m", "␛[3␇1m"],
  ])("%s", (_name, text, shown) => {
    expect(neutralise(text, withColours)).toBe(shown);
  });

  it("a string too long to be one", () => {
    const text = `\x1b]0;${"x".repeat(20_000)}`;
    expect(neutralise(`${text}\x07`)).toBe(`␛${text.slice(1)}␇`);
  });
});

describe("neutralise keeps what is harmless", () => {
  it("for a program, the characters that only a person could be misled by", () => {
    const text = "\u{1f468}\u200d\u{1f469}\u200d\u{1f467} \u202eabc\u202c";
    expect(neutralise(`${text}\x1b[31m\x07`, { keepsInvisible: true })).toBe(`${text}␇`);
  });

  it("newlines, tabs, wide characters and emoji", () => {
    const text = "a\tb\n漢字 ❤️ 👍\n";
    expect(neutralise(text)).toBe(text);
  });

  it("a return before a newline is part of the line's end", () => {
    expect(neutralise("a\r\nb\r\r\nc")).toBe("a\nb\nc");
  });

  it("a return that would overwrite its line begins a new one", () => {
    expect(neutralise("10%\r20%\r30%\r")).toBe("10%\n20%\n30%");
  });

  it("colours, when they are wanted, and switches them off at the end", () => {
    expect(neutralise("\x1b[1;31mred", withColours)).toBe("\x1b[1;31mred\x1b[0m");
    expect(neutralise("\x1b[31mred\x1b[0m", withColours)).toBe("\x1b[31mred\x1b[0m");
    expect(neutralise("\x1b[31mred\x1b[m", withColours)).toBe("\x1b[31mred\x1b[m");
    expect(neutralise("\x1b[38;5;196;48;2;1;2;3mx\x1b[0m", withColours)).toBe(
      "\x1b[38;5;196;48;2;1;2;3mx\x1b[0m",
    );
    expect(neutralise("\x1b[31mred\x1b[0m")).toBe("red");
  });

  it("but not concealed or blinking text, nor half a colour", () => {
    expect(neutralise("\x1b[8mx", withColours)).toBe("x");
    expect(neutralise("\x1b[1;8;5;4mx\x1b[0m", withColours)).toBe("\x1b[1;4mx\x1b[0m");
    expect(neutralise("\x1b[38;2;1mx", withColours)).toBe("x");
    expect(neutralise("\x1b[>4;1mx\x1b[?1mx", withColours)).toBe("xx");
  });
});

describe("neutraliseLine", () => {
  it("shows newlines and tabs too", () => {
    expect(neutraliseLine("evil\nbrig: all is well\t")).toBe("evil␊brig: all is well␉");
  });
});

/** Pieces of which hostile output is made. */
const fragment = fc.oneof(
  fc.constantFrom(
    "\x1b",
    "\x1b[",
    "\x1b]",
    "\x1bP",
    "\x1b_",
    "\x1b\\",
    "\x9b",
    "\x9d",
    "\x9c",
    "\x90",
    "\x07",
    "\r",
    "\n",
  ),
  fc.constantFrom(
    "0;",
    "52;c;",
    "?25",
    "31",
    "8",
    "38;5;",
    "m",
    "H",
    "J",
    "h",
    "t",
    " q",
    "(B",
    "c",
    "\x18",
    "\t",
  ),
  fc.constantFrom("漢", "👍", "\u202e", "\u200b", "e\u0301", "\u{e0061}"),
  fc.string({ maxLength: 5 }),
  fc.string({ unit: "binary", maxLength: 3 }),
);
const hostileText = fc.array(fragment, { maxLength: 30 }).map((pieces) => pieces.join(""));

const esc = "\x1b";
const allowedSgr = new RegExp(`${esc}\\[[0-9;:]*m`, "g");
const acting = /(?![\n\t])[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069\u200b-\u200f]/u;

describe("whatever goes in", () => {
  it(
    promised(
      "kept.terminal",
      "nothing that comes out moves the cursor, changes the terminal or hides, but for colours",
    ),
    () => {
      fc.assert(
        fc.property(hostileText, fc.boolean(), (text, colours) => {
          const shown = neutralise(text, { colours });
          expect(colours ? shown.replace(allowedSgr, "") : shown).not.toMatch(acting);
        }),
        { numRuns: runs({ short: 500, deep: 20_000 }) },
      );
    },
  );

  it("what comes out goes through unchanged a second time", () => {
    fc.assert(
      fc.property(hostileText, (text) => {
        const once = neutralise(text);
        expect(neutralise(once)).toBe(once);
      }),
      { numRuns: runs({ short: 200, deep: 5000 }) },
    );
  });

  it("the seams between the pieces of a stream do not matter", () => {
    fc.assert(
      fc.property(hostileText, fc.array(fc.nat({ max: 40 }), { maxLength: 12 }), (text, cuts) => {
        const bytes = Buffer.from(text, "utf8");
        const stream = new NeutralStream(withColours);
        let shown = "";
        let at = 0;
        for (const length of [...cuts, bytes.length]) {
          shown += stream.push(bytes.subarray(at, at + length));
          at += length;
        }
        expect(shown + stream.end()).toBe(neutralise(bytes.toString("utf8"), withColours));
      }),
      { numRuns: runs({ short: 500, deep: 20_000 }) },
    );
  });

  it("the work grows with the length and not with its square", () => {
    const floods = ["\x1b]", "\x9d", "\x1b[", "\x1bP", "\r", "\x07", "\x1b"].map((piece) =>
      piece.repeat(repetitions({ short: 50_000, deep: 200_000 })),
    );
    for (const flood of floods) expect(neutralise(flood)).not.toContain("\x1b");
  });
});
