import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isLong, jsonPieces } from "../../../../../src/services/serve/http/response.js";

const long = 64 * 1024 + 1;

describe("JSON in pieces", () => {
  it("is the same, whatever is in it", () => {
    const value = fc.dictionary(fc.string(), fc.oneof(fc.string(), fc.jsonValue(), fc.constant(undefined)));
    fc.assert(
      fc.property(value, fc.string({ unit: "grapheme" }), fc.nat({ max: 40 }), (short, unit, before) => {
        const whole = { ...short, text: `${"x".repeat(long - before)}${unit.repeat(20)}`, last: 1 };
        expect(JSON.parse([...jsonPieces(whole)].join(""))).toEqual(JSON.parse(JSON.stringify(whole)));
      }),
      { numRuns: 20 },
    );
  });

  it("never has a long text as a whole, nor a character that is half of one", () => {
    const text = `x${"😀".repeat(long)}\u0001`;
    const pieces = [...jsonPieces({ text })];
    expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThan(7 * 64 * 1024);
    expect(JSON.parse(Buffer.from(pieces.join("")).toString())).toEqual({ text });
  });

  it("is for long texts only", () => {
    expect(isLong({ text: "x".repeat(long) })).toBe(true);
    for (const value of [{ text: "x" }, null, "x".repeat(long), ["x".repeat(long)], 1])
      expect(isLong(value)).toBe(false);
  });
});
