import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { applyChunks, type Edited } from "../../../../src/tools/patch/edit-text.js";
import type { Change } from "../../../../src/tools/patch/patch-format.js";
import { differences } from "./differences.js";
import { lines } from "./patches.js";

const text = (value: string): Edited => ({ kind: "text", text: value });

describe("a chunk", () => {
  it("is not found in a file of equal lines, however long", () => {
    const same = Array.from({ length: 2_000 }, () => ({ kind: "context" as const, text: "a" }));
    const chunk = {
      anchor: null,
      changes: [...same, { kind: "remove" as const, text: "b" }],
      isAtEnd: false,
    };
    expect(applyChunks("a\n".repeat(200_000), [chunk], "f").kind).toBe("mismatch");
  });
});

describe("a patch made of the difference of two files", () => {
  const endings = fc.constantFrom("\n", "\r\n");

  it("turns the first into the second, as one chunk of all lines", () => {
    fc.assert(
      fc.property(lines, lines, endings, (before, after, ending) => {
        const changes = differences(before, after);
        if (changes.length === 0) return;
        const made = applyChunks(ended(before, ending), [{ anchor: null, changes, isAtEnd: false }], "f");
        expect(made).toEqual(text(ended(after, before.length > 0 ? ending : "\n")));
      }),
      { numRuns: 300 },
    );
  });

  it("turns the first into the second, as chunks with one line of context, where lines do not repeat", () => {
    const numbered = fc.uniqueArray(fc.nat(40), { maxLength: 25 }).map((all) => all.map((n) => `line ${n}`));
    fc.assert(
      fc.property(numbered, numbered, endings, (before, after, ending) => {
        fc.pre(before.length > 0);
        const chunks = chunked(differences(["start", ...before], ["start", ...after]));
        const made = applyChunks(ended(["start", ...before], ending), chunks, "f");
        expect(made).toEqual(text(ended(["start", ...after], ending)));
      }),
      { numRuns: 300 },
    );
  });
});

function ended(content: readonly string[], ending: string): string {
  return content.map((one) => one + ending).join("");
}

/** Stretches of changes, each with the line before it. */
function chunked(changes: readonly Change[]) {
  const chunks: { anchor: null; changes: Change[]; isAtEnd: boolean }[] = [];
  changes.forEach((change, at) => {
    if (change.kind === "context") return;
    const before = changes[at - 1];
    if (before?.kind === "context") chunks.push({ anchor: null, changes: [before], isAtEnd: false });
    chunks.at(-1)?.changes.push(change);
  });
  return chunks;
}
