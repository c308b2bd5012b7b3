import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Key, KeyDecoder } from "../../../../../src/cli/conversation/input/keys.js";

function decode(...pieces: (string | Uint8Array)[]): Key[] {
  const decoder = new KeyDecoder();
  return pieces.flatMap((piece) => decoder.push(typeof piece === "string" ? Buffer.from(piece) : piece));
}

const key = (name: string) => ({ kind: "key", name });
const text = (value: string) => ({ kind: "text", text: value });

describe("keys", () => {
  it.each([
    ["\r", "enter"],
    ["\n", "newline"],
    ["\x1b\r", "newline"],
    ["\x1b[13;2u", "newline"],
    ["\x1b[A", "up"],
    ["\x1bOA", "up"],
    ["\x1b[1;5D", "word-left"],
    ["\x1bb", "word-left"],
    ["\x1b[3~", "delete"],
    ["\x1b\x7f", "delete-word-left"],
    ["\x03", "interrupt"],
    ["\x04", "end-of-input"],
    ["\x0f", "unfold"],
    ["\x12", "search"],
    ["\x7f", "backspace"],
  ])("%j is %s", (bytes, name) => {
    expect(decode(bytes)).toEqual([key(name)]);
  });

  it("are taken apart when several come at once", () => {
    expect(decode("ls\r\x1b[Aé😀\x7f")).toEqual([
      text("ls"),
      key("enter"),
      key("up"),
      text("é😀"),
      key("backspace"),
    ]);
  });

  it("are put together when one comes in pieces", () => {
    expect(decode("\x1b", "[", "1;5", "C")).toEqual([key("word-right")]);
    const bytes = Buffer.from("é😀");
    const pieces = [...bytes].map((byte) => Uint8Array.of(byte));
    expect(
      decode(...pieces)
        .map((each) => (each.kind === "text" ? each.text : "?"))
        .join(""),
    ).toBe("é😀");
  });

  it("that nobody knows do nothing", () => {
    expect(decode("\x1b[99;99~a\x1b[<0;1;1M\x1bzb\x00\x9b")).toEqual([text("a"), text("b")]);
  });

  it("leave an ESC open until time has told what it is", () => {
    const decoder = new KeyDecoder();
    expect(decoder.push(Buffer.from("\x1b"))).toEqual([]);
    expect(decoder.undecidedMs).not.toBeNull();
    expect(decoder.settle()).toEqual([key("escape")]);
    expect(decoder.undecidedMs).toBeNull();
    expect(decoder.push(Buffer.from("[A"))).toEqual([text("[A")]);
  });
});

describe("what a terminal answers", () => {
  /** All that comes of the pieces, once nothing more comes. */
  function read(...pieces: string[]): { keys: Key[]; answers: string[] } {
    const answers: string[] = [];
    const decoder = new KeyDecoder((answer) => answers.push(answer));
    const keys = pieces.flatMap((piece) => decoder.push(Buffer.from(piece)));
    return { keys: [...keys, ...decoder.settle()], answers };
  }
  const said = (keys: readonly Key[]) =>
    keys
      .map((each) => (each.kind === "text" ? each.text : each.kind === "key" ? `<${each.name}>` : "?"))
      .join("");

  it.each([
    ["\x1b_Gi=31;OK\x1b\\", "_Gi=31;OK"],
    ["\x1bP>|kitty(0.40)\x1b\\", "P>|kitty(0.40)"],
    ["\x1b]11;rgb:0000/0000/0000\x07", "]11;rgb:0000/0000/0000"],
    ["\x1b[?62;4;22c", "[?62;4;22c"],
    ["\x1b[6;20;10t", "[6;20;10t"],
  ])("%j is no key, whatever is typed around it", (bytes, answer) => {
    const { keys, answers } = read(`a${bytes}b\r`);
    expect([said(keys), answers]).toEqual(["ab<enter>", [answer]]);
  });

  it("is the same however its bytes are cut into pieces, and so is what was typed between", () => {
    const bytes = "x\x1b[B\x1b\\x\x1b_Gi=31;OK\x1b\\y\x1b[A\x1bP>|XTerm(390)\x1b\\\x1b[?64;4c\x1b\rz";
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 20, maxLength: 60 }), (sizes) => {
        const pieces: string[] = [];
        let at = 0;
        for (const size of sizes) {
          pieces.push(bytes.slice(at, at + size));
          at += size;
        }
        const { keys, answers } = read(...pieces, bytes.slice(at));
        expect(said(keys)).toBe("x<down>xy<up><newline>z");
        expect(answers).toEqual(["_Gi=31;OK", "P>|XTerm(390)", "[?64;4c"]);
      }),
      { numRuns: 50 },
    );
  });

  it.each(["\x1b_G", "\x1bP1$r", "\x1b]52;c;", "\x1b^", "\x1bX", "\x1b["])(
    "that has begun with %j may be of any length: it is skipped, and what follows is typed",
    (begin) => {
      const isString = begin !== "\x1b[";
      const piece = (isString ? "A" : "1").repeat(65_536);
      const answers: string[] = [];
      const decoder = new KeyDecoder((answer) => answers.push(answer));
      const keys = decoder.push(Buffer.from(begin + piece));
      for (let count = 0; count < 200; count++) keys.push(...decoder.push(Buffer.from(piece)));
      keys.push(...decoder.push(Buffer.from(isString ? "\x1b" : "1")));
      keys.push(...decoder.push(Buffer.from(isString ? "\\typed" : "ctyped")));
      expect([said(keys), answers, decoder.undecidedMs]).toEqual(["typed", [], null]);
    },
  );

  it("never ends: Enter and ctrl-C are keys all the same, and so is Escape after a while", () => {
    expect(said(read("\x1b_Gi=31;O\rb\x03").keys)).toBe("<enter>b<interrupt>");
    expect(said(read("\x1b_Gi=31;O\x1b[Ab").keys)).toBe("<up>b");
    expect(said(read("\x1b[?62;4\rb").keys)).toBe("<enter>b");
    expect(said(read(`\x1b_${"A".repeat(5000)}`, "B\x1b[Ab").keys)).toBe("<up>b");
    expect(said(read(`\x1b_${"A".repeat(5000)}\x1b`, "\\b").keys)).toBe("b");
    expect(said(read("\x1b").keys)).toBe("<escape>");
  });

  it("that stops in the middle is forgotten after a while, and a key with alt is not the beginning of one", () => {
    for (const begun of ["\x1b_Gi=31", "\x1b[?62;", `\x1bP${"A".repeat(5000)}`, "\x1bP", "\x1b]"]) {
      const decoder = new KeyDecoder();
      expect(decoder.push(Buffer.from(begun))).toEqual([]);
      expect(decoder.undecidedMs).not.toBeNull();
      expect(decoder.settle()).toEqual([]);
      expect(said(decoder.push(Buffer.from("typed\r")))).toBe("typed<enter>");
    }
  });

  it("may be late by more than an Escape key is waited for, once it has begun", () => {
    const patience = (begun: string) => {
      const decoder = new KeyDecoder();
      decoder.push(Buffer.from(begun));
      return decoder.undecidedMs ?? 0;
    };
    for (const begun of ["\x1b_G", "\x1b[?", "\x1bP>", `\x1b]${"A".repeat(5000)}`])
      expect(patience(begun)).toBeGreaterThan(2 * patience("\x1b"));
  });
});

describe("a paste", () => {
  const paste = (value: string) => ({ kind: "paste", text: value, isCut: false });

  it("is one thing, whatever is in it", () => {
    expect(decode("a\x1b[200~one\r\ntwo\rthree\x03\x04\x1b[A\x1b[201~b")).toEqual([
      text("a"),
      paste("one\ntwo\nthree\x03\x04\x1b[A"),
      text("b"),
    ]);
  });

  it("is the same however its bytes are cut into pieces", () => {
    const bytes = Buffer.from("x\x1b[200~first\r\nsecond ü\x1b[20\x1b[201~y\r");
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 40, maxLength: 60 }), (sizes) => {
        const pieces: Uint8Array[] = [];
        let at = 0;
        for (const size of sizes) {
          pieces.push(bytes.subarray(at, at + size));
          at += size;
        }
        pieces.push(bytes.subarray(at));
        expect(decode(...pieces)).toEqual([
          text("x"),
          paste("first\nsecond ü\x1b[20"),
          text("y"),
          key("enter"),
        ]);
      }),
      { numRuns: 50 },
    );
  });

  it("never turns into a key while it has not ended", () => {
    const decoder = new KeyDecoder();
    expect(decoder.push(Buffer.from("\x1b[200~rm -rf /\r\x1b"))).toEqual([]);
    expect(decoder.undecidedMs).toBeNull();
    expect(decoder.settle()).toEqual([]);
  });

  it("that is longer than a model takes is cut, and says so", () => {
    const decoder = new KeyDecoder();
    decoder.push(Buffer.from("\x1b[200~"));
    for (let mebibyte = 0; mebibyte < 3; mebibyte++) decoder.push(Buffer.alloc(1_048_576, "a"));
    const [pasted] = decoder.push(Buffer.from("\x1b[201~"));
    expect(pasted).toMatchObject({ kind: "paste", isCut: true });
    expect(pasted?.kind === "paste" ? pasted.text.length : 0).toBe(1_048_576);
  });
});
