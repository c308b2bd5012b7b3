import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { applyChunks, type Edited } from "../../../../../src/tools/patch/format/edit-text.js";
import { parsePatch } from "../../../../../src/tools/patch/format/parse-patch.js";
import type { Change } from "../../../../../src/tools/patch/format/patch.js";
import { differences } from "../differences.js";
import { lines, patchOf } from "../patches.js";

function edit(text: string, ...chunkLines: string[]): Edited {
  const parsed = parsePatch(patchOf("*** Update File: f", ...chunkLines));
  if (parsed.kind === "invalid") throw new Error(parsed.reason);
  const [hunk] = parsed.patch.hunks;
  if (hunk?.kind !== "update") throw new Error("not one update");
  return applyChunks(text, hunk.chunks, "/w/f");
}

const text = (value: string): Edited => ({ kind: "text", text: value });
const noLines = (...old: string[]): Edited => ({
  kind: "mismatch",
  reason: `Failed to find expected lines in /w/f:\n${old.join("\n")}`,
});
const noContext = (anchor: string): Edited => ({
  kind: "mismatch",
  reason: `Failed to find context '${anchor}' in /w/f`,
});

describe("the place of a chunk", () => {
  it.each([
    ["the first that fits", "x\na\nx\nb\n", ["-x", "+y"], text("y\na\nx\nb\n")],
    ["after the chunk before it", "a\nx\na\nx\n", [" a", "@@", "-x", "@@", "-x"], text("a\na\n")],
    ["never before the chunk before it", "a\nb\n", ["-b", "@@", "-a"], noLines("a")],
    ["one that fits exactly before one that fits nearly", "x \nx\n", ["-x", "+y"], text("x \ny\n")],
    ["found without blanks at line ends", "a \t\nb\n", ["-a", "+c"], text("c\nb\n")],
    ["found with blanks at line ends of the patch", "a\nb\n", ["-a  ", "+c"], text("c\nb\n")],
    ["found without indentation", "\t a\nb\n", ["-  a", "+c"], text("c\nb\n")],
    ["found with ASCII for typographic signs", "“a” – it’s\u00a0b\n", ['-"a" - it\'s b', "+c"], text("c\n")],
    ["found with typographic signs for ASCII", '"a" − it\'s b\n', ["-„a“ − it‘s\u3000b", "+c"], text("c\n")],
    ["found with every dash", "‐‑‒–—―−\n", ["--------", "+c"], text("c\n")],
    ["found with every quote", "‘’‚‛“”„‟\n", [`-''''""""`, "+c"], text("c\n")],
    ["not found in other letters", "A\n", ["-a"], noLines("a")],
    ["not found where the block is longer than the file", "a\n", ["-a", "-b"], noLines("a", "b")],
    ["not found in an empty file", "", ["-a"], noLines("a")],
  ])("is %s", (_, before, chunk, after) => {
    expect(edit(before, ...chunk)).toEqual(after);
  });

  it.each([
    ["starts after the anchor", "f\nx\ng\nx\n", ["@@ g", "-x", "+y"], text("f\nx\ng\ny\n")],
    ["starts after the nearest anchor", "g\nx\ng\nx\n", ["@@ g", "-x", "+y"], text("g\ny\ng\nx\n")],
    [
      "finds an anchor as it finds other lines",
      "  def g():  \nx\n",
      ["@@ def g():", "-x"],
      text("  def g():  \n"),
    ],
    ["cannot be in the anchor itself", "g\n", ["@@ g", "-g"], noLines("g")],
    ["needs the anchor", "x\n", ["@@ g", "-x"], noContext("g")],
    ["needs the anchor after the chunk before it", "g\nx\n", ["-x", "@@ g", "+y"], noContext("g")],
    ["needs even an anchor copied from a unified diff", "x\n", ["@@ -1 +1 @@", "-x"], noContext("-1 +1 @@")],
  ])("%s", (_, before, chunk, after) => {
    expect(edit(before, ...chunk)).toEqual(after);
  });

  it.each([
    ["the end of the file", "a\nb\na\n", ["-a", "*** End of File"], text("a\nb\n")],
    ["only the end of the file", "a\nb\n", ["-a", "*** End of File"], noLines("a")],
    [
      "no earlier than the chunk before it",
      "a\nb\n",
      [" a", " b", "@@", "-b", "*** End of File"],
      noLines("b"),
    ],
    ["the end after an anchor", "a\nb\nc\nb\n", ["@@ a", "-b", "*** End of File"], text("a\nb\nc\n")],
    ["the end, found nearly", "b\nb \n", ["-b", "*** End of File"], text("b\n")],
  ])("with an end marker is %s", (_, before, chunk, after) => {
    expect(edit(before, ...chunk)).toEqual(after);
  });

  it.each([
    ["the blank line before the next chunk", "a\nb\nc\n", ["-a", "+x", "", "@@", "-b"], text("x\nc\n")],
    ["a last blank line that goes", "a\n", ["-a", "-", "+b", "+"], text("b\n")],
    [
      "a blank line before new ones, which then is new itself",
      "a\nb\nz\n",
      [" b", "", "+q"],
      text("a\nb\n\nq\nz\n"),
    ],
    ["one blank line, not two", "a\nz\n", [" a", "", ""], noLines("a", "", "")],
    ["the only line, and then adds at the place reached", "a\nb\n", ["", "+q"], text("\nq\na\nb\n")],
  ])("may ignore %s", (_, before, chunk, after) => {
    expect(edit(before, ...chunk)).toEqual(after);
  });

  it("does not ignore a blank line that is there", () => {
    expect(edit("a\n\nb\n", " a", "-", "+x")).toEqual(text("a\nx\nb\n"));
  });

  it.each([
    ["without an anchor", "a\nb\n", ["@@", "+c"], text("a\nb\nc\n")],
    ["after an anchor", "a\nb\n", ["@@ a", "+c", "*** End of File"], text("a\nb\nc\n")],
    ["after blank lines at the end", "a\n\n\n", ["@@", "+c"], text("a\n\n\nc\n")],
    ["of an empty file", "", ["@@", "+c"], text("c\n")],
    ["in the order of the chunks", "a\n", ["@@", "+b", "@@", "-a", "+x", "@@", "+c"], text("x\nb\nc\n")],
    [
      "before what a later chunk adds there after context",
      "a\n",
      ["@@", "+b", "@@", " a", "+c"],
      text("a\nb\nc\n"),
    ],
  ])("that only adds is the end %s", (_, before, chunk, after) => {
    expect(edit(before, ...chunk)).toEqual(after);
  });

  it.each([
    ["the anchor", "a\nb\n", ["@@ a", "+c"], text("a\nc\nb\n")],
    ["the last line, if that is the anchor", "a\nb", ["@@ b", "+c"], text("a\nb\nc\n")],
    ["each anchor its own", "a\nb\n", ["@@ a", "+c", "@@ b", "+d"], text("a\nc\nb\nd\n")],
    ["the anchor behind earlier changes", "x\na\nb\n", ["-x", "@@ a", "+c"], text("a\nc\nb\n")],
    ["the anchor, before later changes", "a\nb\n", ["@@ a", "+c", "@@", "-b"], text("a\nc\n")],
  ])("that only adds is after %s", (_, before, chunk, after) => {
    expect(edit(before, ...chunk)).toEqual(after);
  });

  it("is not found in a file of equal lines, however long", () => {
    const before = "a\n".repeat(200_000);
    const wanted = Array.from({ length: 2_000 }, () => " a");
    expect(edit(before, ...wanted, "-b").kind).toBe("mismatch");
  });
});

describe("a byte order mark", () => {
  it.each([
    ["stays, though the patch does not have it", ["-a", "+x"], text("\ufeffx\nb\n")],
    ["stays before a first line that only is context", [" a", "-b"], text("\ufeffa\n")],
    ["stays before an anchor", ["@@ a", "-b"], text("\ufeffa\n")],
    ["goes if the patch says so", ["-\ufeffa", "+x"], text("x\nb\n")],
    ["stays if the patch says so", ["-\ufeffa", "+\ufeffx"], text("\ufeffx\nb\n")],
    ["is no reason to find what is not there", ["-c"], noLines("c")],
  ])("%s", (_, chunk, after) => {
    expect(edit("\ufeffa\nb\n", ...chunk)).toEqual(after);
  });
});

describe("line endings", () => {
  it.each([
    ["CRLF stays", "a\r\nb\r\n", ["-a", "+x", "+y"], "x\r\ny\r\nb\r\n"],
    ["CR stays", "a\rb\r", ["-a", "+x"], "x\rb\r"],
    ["new lines end as the first line does", "a\r\nb\nc\n", [" b", "+x"], "a\r\nb\nx\r\nc\n"],
    ["lines that stay keep theirs", "a\nb\r\nc\r", [" b", "+x"], "a\nb\r\nx\nc\r"],
    ["a last line without one gets one", "a\nb", ["-a", "+x"], "x\nb\n"],
    ["a last line without one gets the file's", "a\r\nb", ["-a", "+x"], "x\r\nb\r\n"],
    ["an only line without one gets LF", "a", [" a", "+b"], "a\nb\n"],
    ["a file may become empty", "a\n", ["-a"], ""],
    ["a file whose last line is blank stays so", "a\n\n", ["-a", "+b"], "b\n\n"],
    [
      "context keeps the file's blanks and signs",
      "  a  \n“b”\nc\n",
      [" a", ' "b"', "-c", "+d"],
      "  a  \n“b”\nd\n",
    ],
  ])("%s", (_, before, chunk, after) => {
    expect(edit(before, ...chunk)).toEqual(text(after));
  });

  it("are those of the patch nowhere", () => {
    const parsed = parsePatch(patchOf("*** Update File: f", "@@", "-a", "+x").replaceAll("\n", "\r\n"));
    if (parsed.kind !== "patch" || parsed.patch.hunks[0]?.kind !== "update") throw new Error("no update");
    expect(applyChunks("a\nb\n", parsed.patch.hunks[0].chunks, "f")).toEqual(text("x\nb\n"));
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
