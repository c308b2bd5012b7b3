import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parsePatch } from "../../../../src/tools/patch/patch-format.js";
import { hunks, mutatedPatch } from "./patches.js";
import { printPatch } from "./print-patch.js";

describe("a printed patch", () => {
  it("is read back as it was", () => {
    fc.assert(
      fc.property(hunks, (original) => {
        expect(parsePatch(printPatch(original))).toEqual({ kind: "patch", hunks: original });
      }),
      { numRuns: 300 },
    );
  });

  it("means what the text meant that it was parsed from", () => {
    fc.assert(
      fc.property(mutatedPatch, (text) => {
        const parsed = parsePatch(text);
        if (parsed.kind === "patch") expect(parsePatch(printPatch(parsed.hunks))).toEqual(parsed);
      }),
      { numRuns: 500 },
    );
  });
});
