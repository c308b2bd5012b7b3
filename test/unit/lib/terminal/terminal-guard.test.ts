import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { TerminalGuard } from "../../../../src/lib/terminal/terminal-guard.js";
import { runs } from "../../../support/fuzz.js";

function passed(text: string): string {
  return new TerminalGuard().push(Buffer.from(text, "utf8"));
}

describe("TerminalGuard lets programs draw", () => {
  it.each([
    ["movement and clearing", "\x1b[2J\x1b[10;5H\x1b[K"],
    ["colours", "\x1b[1;31mred\x1b[0m"],
    ["the alternative screen, the mouse, pasting", "\x1b[?1049h\x1b[?1000h\x1b[?2004h"],
    ["the question where the cursor is", "\x1b[6n"],
    ["tabs, returns, backspaces and the bell", "a\tb\r\n\b\x07"],
    ["line drawing characters", "\x1b(0lqk\x1b(B"],
    ["a saved and restored cursor", "\x1b7\x1b8"],
    ["the size of the text area", "\x1b[18t"],
    ["titles on the stack of titles", "\x1b[22;0t\x1b[23;0t"],
  ])("%s", (_name, text) => {
    expect(passed(text)).toBe(text);
  });

  it("titles and hyperlinks, in one spelling", () => {
    expect(passed("\x1b]0;vim\x07")).toBe("\x1b]0;vim\x1b\\");
    expect(passed("\x1b]8;;http://a\x1b\\a\x1b]8;;\x1b\\")).toBe("\x1b]8;;http://a\x1b\\a\x1b]8;;\x1b\\");
  });

  it("a bare line feed moves down without a return, though the terminal driver would add one", () => {
    expect(passed("a\nb\r\nc\n\n")).toBe("a\x1bDb\r\nc\x1bD\x1bD");
    const guard = new TerminalGuard();
    expect(guard.push(Buffer.from("a\r")) + guard.push(Buffer.from("\nb"))).toBe("a\r\nb");
  });
});

describe("TerminalGuard holds back what reaches beyond the terminal", () => {
  it.each([
    ["writing the clipboard", "\x1b]52;c;ZXZpbA==\x07"],
    ["reading the clipboard", "\x1b]52;c;?\x07"],
    ["the clipboard of iTerm, and its downloads", "\x1b]1337;CopyToClipboard=\x07\x1b]1337;File=:AA==\x07"],
    ["notifications", "\x1b]9;x\x07\x1b]777;notify;a;b\x07\x1b]99;;x\x1b\\"],
    ["the working directory of new tabs", "\x1b]7;file:///etc\x07"],
    ["the palette", "\x1b]4;1;#000000\x07"],
    ["device control strings", "\x1bP+q544e\x1b\\\x90x\x9c"],
    ["application commands, privacy messages and strings", "\x1b_Gx\x1b\\\x1b^x\x1b\\\x1bXx\x1b\\"],
    ["reports of the title and icon", "\x1b[21t\x1b[20t"],
    ["moving, resizing and closing the window", "\x1b[3;0;0t\x1b[8;1;1t\x1b[2t"],
    ["printing", "\x1b[5i\x1b[?5i"],
    ["the answer-back string", "\x05"],
    ["leaving UTF-8", "\x1b%@"],
    ["8-bit control characters", "\x1b G"],
    ["an ESC that could join what follows", "\x1b\x1b"],
  ])("%s", (_name, text) => {
    expect(passed(text)).toBe("");
  });

  it("a string that is broken on purpose shows as text and opens nothing", () => {
    expect(passed("\x1b]52;c;AA\x02AA\x07")).toBe("]52;c;AAAA\x07");
  });

  it("a sequence in two pieces is judged as one", () => {
    const guard = new TerminalGuard();
    expect(guard.push(Buffer.from("a\x1b]5"))).toBe("a");
    expect(guard.push(Buffer.from("2;c;AA"))).toBe("");
    expect(guard.push(Buffer.from("\x07b"))).toBe("b");
  });
});

describe("TerminalGuard puts the terminal back", () => {
  function undone(text: string): string {
    const guard = new TerminalGuard();
    guard.push(Buffer.from(text));
    return guard.end();
  }

  it.each([
    ["nothing, when nothing was changed", "ls\r\n", ""],
    [
      "nothing, when the program tidied up itself",
      "\x1b[?1049h\x1b[?25l\x1b[31m\x1b[0m\x1b[?25h\x1b[?1049l",
      "",
    ],
    [
      "the screen, the cursor and the mouse",
      "\x1b[?1049h\x1b[?25l\x1b[?1000;1006h",
      "\x1b[?1049l\x1b[?25h\x1b[?1000l\x1b[?1006l",
    ],
    ["colours", "\x1b[31m", "\x1b[0m"],
    ["margins and character sets", "\x1b[2;5r\x1b(0", "\x1b[!p\x0f\x1b[0 q"],
    ["keyboard protocols", "\x1b[>1u\x1b[>1u\x1b[<u\x1b[>4;2m", "\x1b[<1u\x1b[>4m"],
  ])("%s", (_name, text, undo) => {
    expect(undone(text)).toBe(undo);
  });

  it("without growing, however many modes a program makes up", () => {
    expect(undone(Array.from({ length: 9_000 }, (_, mode) => `\x1b[?${mode}h`).join("")).length).toBeLessThan(
      300,
    );
  });
});

const esc = "\x1b";
const opener = new RegExp(`${esc}\\](\\d*)`, "g");
const reachesBeyond = new RegExp(`${esc}(?:[P_^X${esc}]|\\[2[01]t|\\[[0-9;?]*i|$)|[\x80-\x9f]`);

describe("whatever a program prints", () => {
  it("no string but a title, a link or a colour reaches the terminal", () => {
    const piece = fc.constantFrom(
      ..."\x1b] \x1bP \x1b_ \x1b[ \x9d \x90 \x9b \x9c \x1b\\ \x1b \x07 52; c; 21 t 0;x 5 i \x02 m x".split(
        " ",
      ),
      " ",
      "\n",
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 25 }), (pieces) => {
        const guard = new TerminalGuard();
        const text = pieces.map((one) => guard.push(Buffer.from(one))).join("") + guard.end();
        for (const [, code] of text.matchAll(opener))
          expect(["0", "1", "2", "8", "10", "11", "12", "110", "111", "112"]).toContain(code);
        expect(text).not.toMatch(reachesBeyond);
      }),
      { numRuns: runs({ short: 800, deep: 30_000 }) },
    );
  });
});
