import { expect, it } from "vitest";
import { trim, trimEnd, trimStart } from "../../../src/lib/white-space.js";

it("what is trimmed is white space in the sense of Unicode, and nothing else", () => {
  const units = Array.from({ length: 0x10000 }, (_, unit) => String.fromCharCode(unit));
  const expected = units.filter((unit) => /^\p{White_Space}$/u.test(unit));
  for (const trimmed of [trim, trimStart, trimEnd])
    expect(units.filter((unit) => trimmed(unit) === "")).toEqual(expected);
});

it("white space is trimmed at its end of the text only", () => {
  expect(trimStart(" \u2003a b\u0085 ")).toBe("a b\u0085 ");
  expect(trimEnd(" \u2003a b\u0085 ")).toBe(" \u2003a b");
  expect(trim(" \u2003a b\u0085 ")).toBe("a b");
});
