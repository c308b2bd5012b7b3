import fc from "fast-check";
import { describe, expect, it } from "vitest";
// @ts-expect-error -- a plain script without types
import { diffTrees } from "../../../scripts/demo/unified-diff.js";

const lines = (count: number) => Array.from({ length: count }, (_, n) => `line ${n + 1}\n`).join("");

describe("diffTrees", () => {
  it("shows what changed with three lines around it", () => {
    const before = lines(12);
    const after = before.replace("line 6\n", "line six\n").replace("line 12\n", "");
    expect(diffTrees(new Map([["a.txt", before]]), new Map([["a.txt", after]]))).toBe(`--- a/a.txt
+++ b/a.txt
@@ -3,10 +3,9 @@
 line 3
 line 4
 line 5
-line 6
+line six
 line 7
 line 8
 line 9
 line 10
 line 11
-line 12
`);
  });

  it("names files that came and went, and says nothing when nothing changed", () => {
    expect(diffTrees(new Map([["a", "x\n"]]), new Map([["b", "y\n"]]))).toBe(
      "--- a/a\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-x\n--- /dev/null\n+++ b/b\n@@ -0,0 +1,1 @@\n+y\n",
    );
    expect(diffTrees(new Map([["a", "x\n"]]), new Map([["a", "x\n"]]))).toBe("");
  });

  it("leads from the one text to the other, whatever they are", () => {
    const text = fc.array(fc.constantFrom("a\n", "b\n", "c\n"), { maxLength: 30 });
    fc.assert(
      fc.property(text, text, (from, to) => {
        const diff: string = diffTrees(new Map([["file", from.join("")]]), new Map([["file", to.join("")]]));
        expect(apply(from, diff)).toEqual(to);
      }),
    );
  });
});

/** Applies a diff of one file, and insists that every line of it is where it says. */
function apply(lines: readonly string[], diff: string): string[] {
  const result = [...lines];
  let shift = 0;
  for (const hunk of diff.split(/^(?=@@ )/m).slice(1)) {
    const [header = "", ...body] = hunk.split(/(?<=\n)/);
    const [, start = 0, length = 0, , newLength = 0] = (
      /^@@ -(\d+),(\d+) \+(\d+),(\d+) @@$/m.exec(header) ?? []
    ).map(Number);
    const old = body.filter((line) => !line.startsWith("+")).map((line) => line.slice(1));
    const fresh = body.filter((line) => !line.startsWith("-")).map((line) => line.slice(1));
    expect([old.length, fresh.length]).toEqual([length, newLength]);
    const at = (length === 0 ? start : start - 1) + shift;
    expect(result.splice(at, old.length, ...fresh)).toEqual(old);
    shift += fresh.length - old.length;
  }
  return result;
}
