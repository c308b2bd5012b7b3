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
    expect(decoder.isUndecided).toBe(true);
    expect(decoder.settle()).toEqual([key("escape")]);
    expect(decoder.isUndecided).toBe(false);
    expect(decoder.push(Buffer.from("[A"))).toEqual([text("[A")]);
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
    expect(decoder.isUndecided).toBe(false);
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
