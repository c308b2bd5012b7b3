import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Utf8Stream, wholeEnd, wholeStart } from "../../../src/lib/utf8.js";

function decode(bytes: Uint8Array, pieceBytes: number): string {
  const stream = new Utf8Stream();
  let text = "";
  for (let at = 0; at < bytes.length; at += pieceBytes)
    text += stream.push(bytes.subarray(at, at + pieceBytes));
  return text + stream.end();
}

describe("Utf8Stream", () => {
  it("joins a character that was split between pieces", () => {
    expect(decode(Buffer.from("aé漢👍"), 1)).toBe("aé漢👍");
  });

  it("replaces what is not UTF-8, and an unfinished character at the end", () => {
    expect(decode(Uint8Array.of(0x61, 0xff, 0x62, 0xe6, 0xbc), 1)).toBe("a\ufffdb\ufffd");
  });

  it("keeps a byte order mark", () => {
    expect(decode(Buffer.from("\ufeffa"), 2)).toBe("\ufeffa");
  });

  it("gives the same text for any bytes in any pieces", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), fc.integer({ min: 1, max: 10 }), (bytes, pieceBytes) => {
        expect(decode(bytes, pieceBytes)).toBe(Buffer.from(bytes).toString("utf8"));
      }),
    );
  });
});

describe("whole characters", () => {
  it("are all of a text but its broken end", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.nat(400), (text, length) => {
        const bytes = Buffer.from(text).subarray(0, length);
        const whole = bytes.subarray(0, wholeEnd(bytes));
        expect(Buffer.from(text).subarray(0, whole.length)).toEqual(Buffer.from(whole));
        expect(() => new TextDecoder("utf-8", { fatal: true }).decode(whole)).not.toThrow();
        expect(bytes.length - whole.length).toBeLessThan(4);
      }),
    );
  });

  it("are all of a text but its broken start", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.nat(400), (text, from) => {
        const bytes = Buffer.from(text).subarray(from);
        const whole = bytes.subarray(wholeStart(bytes));
        expect(text.endsWith(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(whole))).toBe(
          true,
        );
        expect(bytes.length - whole.length).toBeLessThan(4);
      }),
    );
  });

  it("leave bytes that are no text alone but for three", () => {
    expect(wholeStart(Buffer.alloc(9, 0x80))).toBe(3);
    expect(wholeStart(Buffer.alloc(2, 0x80))).toBe(2);
    expect(wholeEnd(Buffer.alloc(9, 0x80))).toBe(9);
  });
});
