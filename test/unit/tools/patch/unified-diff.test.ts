import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { FileDiff } from "../../../../src/tools/patch/unified-diff.js";
import { applyHunks, editsOfDiff, parseDiff } from "../../../../src/tools/patch/unified-diff.js";
import { fileText, mutatedPatch } from "./patches.js";
import { unifiedDiff } from "./unified-diff.js";

function filesOf(...lines: string[]): FileDiff[] {
  const parsed = parseDiff(lines.join("\n"));
  if (parsed.kind === "invalid") throw new Error(parsed.reason);
  return parsed.files;
}

function reasonOf(...lines: string[]): string {
  const parsed = parseDiff(lines.join("\n"));
  return parsed.kind === "invalid" ? parsed.reason : "a diff";
}

/** The text after a diff of one file. */
function patched(text: string, diff: string): string {
  const result = applyHunks(text, filesOf(diff)[0]?.hunks ?? [], "/w/f");
  return result.kind === "text" ? result.text : result.reason;
}

const names = ["--- a/f", "+++ b/f"];
const change = ["@@ -1 +1 @@", "-a", "+b"];

describe("a byte order mark", () => {
  it("may come before a diff", () => {
    expect(filesOf(`\ufeff${names[0]}`, names[1] ?? "", ...change)).toHaveLength(1);
  });

  it("of the file stays, whether the diff has it or not", () => {
    const edited = (text: string, old: string, changed: string) => {
      const diff = [...names, "@@ -1 +1 @@", `-${old}`, `+${changed}`];
      const [edit] = editsOfDiff(filesOf(...diff), "/w");
      return edit?.kind === "update" ? edit.edit(text, "/w/f") : null;
    };
    expect(edited("\ufeffa\n", "a", "b")).toEqual({ kind: "text", text: "\ufeffb\n" });
    expect(edited("\ufeffa\n", "\ufeffa", "b")).toEqual({ kind: "text", text: "b\n" });
  });
});

describe("a unified diff", () => {
  it("has files, hunks and lines", () => {
    expect(
      filesOf(...names, "@@ -2,2 +2,3 @@ def f():", " a", "-b", "+c", "+d", "\\ No newline at end of file"),
    ).toEqual([
      {
        oldName: "f",
        newName: "f",
        isRename: false,
        mode: null,
        hunks: [
          {
            oldStart: 2,
            lines: [
              { kind: "context", text: "a", isUnended: false },
              { kind: "remove", text: "b", isUnended: false },
              { kind: "add", text: "c", isUnended: false },
              { kind: "add", text: "d", isUnended: true },
            ],
          },
        ],
      },
    ]);
  });

  it.each([
    ["--- a/f", "+++ b/f", "f", "f"],
    ["--- f", "+++ f", "f", "f"],
    ["--- /w/f", "+++ /w/f", "/w/f", "/w/f"],
    ["--- a/d e/f\t2026-01-01 10:00", "+++ b/d e/f\t2026-01-01 10:01", "d e/f", "d e/f"],
    ['--- "a/\\303\\251\\t\\"x\\""', '+++ "b/\\303\\251\\t\\"x\\""', 'é\t"x"', 'é\t"x"'],
    ["--- a/f", "+++ a/f", "a/f", "a/f"],
    ["--- f.orig", "+++ f", "f.orig", "f"],
    ["--- /dev/null", "+++ b/f", null, "f"],
    ["--- a/f", "+++ /dev/null", "f", null],
  ])("with %j and %j names %j and %j", (oldLine, newLine, oldName, newName) => {
    expect(filesOf(oldLine, newLine, ...change)).toMatchObject([{ oldName, newName, isRename: false }]);
  });

  it("renames where git says so, and where both names have their prefixes", () => {
    const renamed = { oldName: "d/old name", newName: "new", isRename: true };
    const git = [
      "diff --git a/d/old name b/new",
      "similarity index 90%",
      "rename from d/old name",
      "rename to new",
    ];
    expect(filesOf(...git)).toMatchObject([{ ...renamed, hunks: [] }]);
    expect(filesOf(...git, "index 1..2 100644", "--- a/d/old name", "+++ b/new", ...change)).toMatchObject([
      renamed,
    ]);
    expect(filesOf("--- a/d/old name", "+++ b/new", ...change)).toMatchObject([renamed]);
  });

  it("adds and deletes as git says, empty files too", () => {
    const diff = filesOf(
      ...[
        "diff --git a/run.sh b/run.sh",
        "new file mode 100755",
        "index 0..1",
        "--- /dev/null",
        "+++ b/run.sh",
        "@@ -0,0 +1 @@",
        "+a",
      ],
      ...["diff --git a/two words b/two words", "new file mode 100644", "index 0..e69de29"],
      ...["diff --git a/gone b/gone", "deleted file mode 100644", "index e69de29..0"],
    );
    expect(diff).toMatchObject([
      { oldName: null, newName: "run.sh", mode: 0o755 },
      { oldName: null, newName: "two words", mode: 0o644, hunks: [] },
      { oldName: "gone", newName: null, hunks: [] },
    ]);
  });

  it("takes git's other prefixes for the two sides", () => {
    expect(filesOf("diff --git i/f w/f", "index 1..2", "--- i/f", "+++ w/f", ...change)).toMatchObject([
      { oldName: "f", newName: "f" },
    ]);
  });

  it("may be in a mail, among other text", () => {
    const mail = ["From 12ab", "Subject: [PATCH] a", "---", " f | 2 +-", ""];
    const signature = ["-- ", "2.39.0", ""];
    expect(
      filesOf(...mail, ...names, ...change, ...signature, ...mail, ...names, ...change, ...signature),
    ).toHaveLength(2);
  });

  it("is believed its counts when they are right, so that a line may look like a header", () => {
    const [file] = filesOf(...names, "@@ -1,2 +1,2 @@", "--- a/x", "-y", "+++ b/x", "+z");
    expect(file?.hunks[0]?.lines.map(({ text }) => text)).toEqual(["-- a/x", "y", "++ b/x", "z"]);
  });

  it("is read up to the next header when its counts are wrong", () => {
    const files = filesOf(
      ...names,
      "@@ -1,3 +1,3 @@",
      "-a",
      "+b",
      "",
      "--- a/g",
      "+++ b/g",
      "@@ -1,9 +1,9 @@",
      "-c",
      "+d",
    );
    expect(files.map(({ newName, hunks }) => [newName, hunks[0]?.lines.length])).toEqual([
      ["f", 2],
      ["g", 2],
    ]);
  });

  it("may leave out the place of a hunk, and the blank of an empty context line", () => {
    const [file] = filesOf(...names, "@@", " a", "", "-b", "@@ def g():", "+c");
    expect(file?.hunks).toMatchObject([
      { oldStart: null, lines: [{}, { kind: "context", text: "" }, {}] },
      { oldStart: null },
    ]);
  });

  it.each([
    ["no file", ["hello"], "the diff names no file"],
    ["a hunk without a file", change, "invalid diff at line 1: a hunk without a file"],
    [
      "a file without hunks",
      [...names, "", "--- a/g", "+++ b/g", ...change],
      "invalid diff at line 4: a file without hunks",
    ],
    ["a hunk without lines", [...names, "@@ -1 +1 @@"], "invalid diff at line 3: a hunk without lines"],
    ["a bad hunk header", [...names, "@@-1 +1@@"], "invalid diff at line 3: not a hunk header"],
    ["a stray line in a hunk", [...names, ...change, "hello"], "a diff"],
    [
      "a stray line in a short hunk",
      [...names, "@@ -1,2 +1,2 @@", "-a", "hello"],
      "invalid diff at line 5: a line that starts with none of ' ', '+', '-'",
    ],
    [
      "a copy",
      ["diff --git a/f b/g", "copy from f", "copy to g"],
      "invalid diff at line 2: copies are not supported",
    ],
    [
      "a binary patch",
      ["diff --git a/f b/f", "index 1..2", "GIT binary patch", "literal 1"],
      "invalid diff at line 3: binary changes are not supported",
    ],
    [
      "two binary files",
      ["diff --git a/f b/f", "Binary files a/f and b/f differ"],
      "invalid diff at line 2: binary changes are not supported",
    ],
    [
      "two binary files without git",
      ["Binary files f and g differ", ...names, ...change],
      "invalid diff at line 1: binary changes are not supported",
    ],
    [
      "a new link",
      ["diff --git a/f b/f", "new file mode 120000", "--- /dev/null", "+++ b/f", ...change],
      "invalid diff at line 2: links and submodules are not supported",
    ],
    [
      "a change of a mode",
      ["diff --git a/f b/f", "old mode 100644", "new mode 100755"],
      "invalid diff at line 3: a change of a file's mode is not supported",
    ],
    [
      "a file that never was",
      ["--- /dev/null", "+++ /dev/null", ...change],
      "invalid diff at line 5: a file without a name",
    ],
  ])("with %s is answered", (_, lines, reason) => {
    expect(reasonOf(...lines)).toBe(reason);
  });

  it("never makes the parser fail otherwise", () => {
    fc.assert(
      fc.property(mutatedPatch, (text) => {
        const parsed = parseDiff(text.replaceAll("*** Update File: ", "--- a/x\n+++ b/"));
        if (parsed.kind === "diff") editsOfDiff(parsed.files, "/w");
      }),
      { numRuns: 500 },
    );
  });
});

describe("the hunks of a diff", () => {
  const swap = (header: string) => ["--- f", "+++ f", header, "-x", "+y", ""].join("\n");

  it.each([
    ["where the header says", "x\na\nx\na\nx\n", swap("@@ -3 +3 @@"), "x\na\ny\na\nx\n"],
    ["where the nearest such lines are", "x\na\na\nx\na\nx\n", swap("@@ -3 +3 @@"), "x\na\na\ny\na\nx\n"],
    ["at the first such lines without a place", "a\nx\nx\n", swap("@@"), "a\ny\nx\n"],
    ["past the end too", "x\n", swap("@@ -99 +99 @@"), "y\n"],
    ["nowhere without such lines", "x \n", swap("@@ -1 +1 @@"), "Failed to find expected lines in /w/f:\nx"],
  ])("apply %s", (_, before, diff, expected) => {
    expect(patched(before, diff)).toBe(expected);
  });

  it("shift those after them", () => {
    const diff = ["--- f", "+++ f", "@@ -1 +1,2 @@", "-a", "+b", "@@ -4 +5 @@", "-x", "+y"].join("\n");
    expect(patched("0\n0\n0\na\nx\n0\n0\nx\n0\n0\nx\n", diff)).toBe("0\n0\n0\nb\nx\n0\n0\ny\n0\n0\nx\n");
  });

  it("that only add go after the line they name", () => {
    const diff = ["--- f", "+++ f", "@@ -2,0 +3 @@", "+x"].join("\n");
    expect(patched("a\nb\nc\n", diff)).toBe("a\nb\nx\nc\n");
    expect(patched("a\n", diff)).toBe("Failed to find expected lines in /w/f:\n");
  });

  it("may end a file with a newline, or without", () => {
    const ends = ["--- f", "+++ f", "@@ -1 +1 @@", "-a", "\\ No newline at end of file", "+a", ""].join("\n");
    const unends = ["--- f", "+++ f", "@@ -1 +1 @@", "-a", "+a", "\\ No newline at end of file"].join("\n");
    expect(patched("a\nb\na", ends)).toBe("a\nb\na\n");
    expect(patched("a\n", unends)).toBe("a");
    expect(patched("b\na", swap("@@ -1 +1 @@").replace("x", "b"))).toBe("y\na");
  });

  it.each([
    ["a diff without CR in a file with", "a\r\nx\r\n", swap("@@ -2 +2 @@"), "a\r\ny\r\n"],
    [
      "a diff sent with CRLF in a file without",
      "a\nx\n",
      swap("@@ -2 +2 @@").replaceAll("\n", "\r\n"),
      "a\ny\n",
    ],
    [
      "a diff sent with CRLF in a file with",
      "a\r\nx\r\n",
      swap("@@ -2 +2 @@").replaceAll("\n", "\r\n"),
      "a\r\ny\r\n",
    ],
    ["a diff of a file with CRLF", "x\r\n", "--- f\n+++ f\n@@ -1 +1 @@\n-x\r\n+y\r\n", "y\r\n"],
    ["a diff of a file with CRLF in one without", "x\n", "--- f\n+++ f\n@@ -1 +1 @@\n-x\r\n+y\r\n", "y\n"],
    ["a diff that takes CRs away", "x\r\n", "--- f\n+++ f\n@@ -1 +1 @@\n-x\r\n+x\n", "x\n"],
    ["a diff that only adds to a file with CRLF", "a\r\n", "--- f\n+++ f\n@@ -1,0 +2 @@\n+y\n", "a\r\ny\r\n"],
  ])("keep line endings: %s", (_, before, diff, expected) => {
    expect(patched(before, diff)).toBe(expected);
  });

  it("of the difference of two texts turn the first into the second", () => {
    fc.assert(
      fc.property(fileText, fileText, fc.nat(3), (before, next, context) => {
        if (before === next) return;
        // An empty file has no line endings to keep, and a diff without context cannot show those that are there.
        fc.pre(context > 0 || before.includes("\r") === next.includes("\r") || before === "");
        expect(patched(before, unifiedDiff(before, next, context))).toBe(next);
      }),
      { numRuns: 500 },
    );
  });
});
