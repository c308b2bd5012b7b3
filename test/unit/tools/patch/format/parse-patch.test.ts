import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parsePatch } from "../../../../../src/tools/patch/format/parse-patch.js";
import type { Hunk } from "../../../../../src/tools/patch/format/patch.js";
import { mutatedPatch, patch, patchOf } from "../patches.js";
import { printPatch } from "../print-patch.js";

function hunksOf(text: string): Hunk[] {
  const parsed = parsePatch(text);
  if (parsed.kind === "invalid") throw new Error(parsed.reason);
  return parsed.patch.hunks;
}

function reasonOf(text: string): string {
  const parsed = parsePatch(text);
  return parsed.kind === "invalid" ? parsed.reason : "a patch";
}

const add: Hunk = { kind: "add", path: "f", lines: ["a"] };
const addF = ["*** Add File: f", "+a"];
const badHeader = (line: string) =>
  `'${line}' is not a valid hunk header. Valid hunk headers: '*** Add File: {path}', '*** Delete File: {path}', '*** Update File: {path}'`;
const unexpected = (line: string) =>
  `Unexpected line found in update hunk: '${line}'. Every line should start with ' ' (context line), '+' (added line), or '-' (removed line)`;
const expectedMarker = (line: string) =>
  `Expected update hunk to start with a @@ context marker, got: '${line}'`;
const noLines = "Update hunk does not contain any lines";

describe("the envelope of a patch", () => {
  it.each([
    ["as it is", patchOf(...addF)],
    ["with a final newline", `${patchOf(...addF)}\n`],
    ["with blanks around", `  \n ${patchOf(...addF)}  \n\u0085\u00a0`],
    ["with an indented last line", `*** Begin Patch\n*** Add File: f\n+a\n   *** End Patch`],
    ["with CRLF", patchOf(...addF).replaceAll("\n", "\r\n")],
    ["with a byte order mark", `\ufeff${patchOf(...addF)}`],
    ["with CR CR LF", patchOf(...addF).replaceAll("\n", "\r\r\n")],
    ["in what is left of a heredoc", `<<EOF\n${patchOf(...addF)}\nEOF`],
    ["in what is left of a quoted heredoc", `<<'EOF'\n${patchOf(...addF)}\nEOF\n`],
    ["in what is left of a doubly quoted heredoc", `<<"EOF"\n${patchOf(...addF)}\nEOF`],
    ["in a heredoc whose last line only ends with the tag", `<<EOF\n${patchOf(...addF)}\nx EOF`],
    ["with a second end", patchOf(...addF, "*** End Patch")],
    ["with blank lines before a second end", patchOf(...addF, "*** End Patch", "", "  ")],
  ])("may come %s", (_, text) => {
    expect(hunksOf(text)).toEqual([add]);
  });

  const first = "invalid patch: The first line of the patch must be '*** Begin Patch'";
  const last = "invalid patch: The last line of the patch must be '*** End Patch'";
  it.each([
    ["nothing", "", last],
    ["blanks", " \n ", last],
    ["a beginning alone", "*** Begin Patch", last],
    ["an end alone", "*** End Patch", first],
    ["text before it", `hello\n${patchOf(...addF)}`, first],
    ["text after it", `${patchOf(...addF)}\nhello`, last],
    ["a fence around it", `\`\`\`\n${patchOf(...addF)}\n\`\`\``, first],
    ["two byte order marks before it", `\ufeff\ufeff${patchOf(...addF)}`, first],
    ["a beginning in other letters", "*** begin patch\n*** End Patch", first],
    ["a heredoc with another tag", `<<'X'\n${patchOf(...addF)}\nX`, first],
    ["a heredoc with a blank before its tag", `<< EOF\n${patchOf(...addF)}\nEOF`, first],
    ["a heredoc with blank lines inside", `<<EOF\n\n${patchOf(...addF)}\n\nEOF`, first],
    ["a heredoc without an end inside", "<<'EOF'\n*** Begin Patch\n*** Add File: f\n+a\nEOF", last],
    ["a heredoc of three lines", "<<EOF\n*** Begin Patch\nEOF", first],
    ["text after a first end", patchOf(...addF, "*** End Patch", "hello"), last],
    ["a second patch", patchOf(...addF, "*** End Patch", "*** Begin Patch", ...addF), last],
  ])("is refused with %s", (_, text, reason) => {
    expect(reasonOf(text)).toBe(reason);
  });

  it("may be empty", () => {
    expect(hunksOf(patchOf())).toEqual([]);
  });

  it("may name an environment, once, before the hunks", () => {
    expect(parsePatch(patchOf(" *** Environment ID:  box  ", ...addF))).toEqual({
      kind: "patch",
      patch: { environmentId: "box", hunks: [add] },
    });
    expect(reasonOf(patchOf("*** Environment ID: ", ...addF))).toBe(
      "invalid patch: apply_patch environment_id cannot be empty",
    );
    expect(reasonOf(patchOf("*** Environment ID: a", "*** Environment ID: b", ...addF))).toBe(
      "invalid patch: apply_patch environment_id cannot be specified more than once",
    );
    expect(reasonOf(patchOf(...addF, "*** Environment ID: a"))).toBe(
      `invalid hunk at line 4, ${badHeader("*** Environment ID: a")}`,
    );
  });
});

describe("the headers of hunks", () => {
  it.each([
    ["*** Add File: a b.txt", "a b.txt"],
    ["   *** Add File: a  \t", "a"],
    ["\u00a0*** Add File: a\u3000", "a"],
    ["*** Add File:   a", "  a"],
    ["*** Add File: /abs/a", "/abs/a"],
    ["*** Add File: ../a", "../a"],
    ['*** Add File: "a"', '"a"'],
  ])("%j names the file %j", (header, path) => {
    expect(hunksOf(patchOf(header))).toEqual([{ kind: "add", path, lines: [] }]);
  });

  it.each([
    "*** add file: f",
    "***Add File: f",
    "***  Add File: f",
    "*** Add File:",
    "*** Rename File: f",
    "*** Move to: f",
    "*** Begin Patch",
    "hello",
    "",
  ])("%j is none", (line) => {
    expect(reasonOf(patchOf(line))).toBe(`invalid hunk at line 2, ${badHeader(line)}`);
  });

  it("tell the line that is none without its blanks", () => {
    expect(reasonOf(patchOf(...addF, "  +b  "))).toBe(`invalid hunk at line 4, ${badHeader("+b")}`);
  });

  it.each([
    ["an addition", patchOf("*** Add File: f", "+a", "", "+b"), 4, ""],
    ["a deletion", patchOf("*** Delete File: f", "+a"), 3, "+a"],
    ["the beginning", patchOf("", ...addF), 2, ""],
  ])("are missed after %s", (_, text, line, found) => {
    expect(reasonOf(text)).toBe(`invalid hunk at line ${line}, ${badHeader(found)}`);
  });
});

describe("an update", () => {
  const update = (...lines: string[]) => patchOf("*** Update File: f", ...lines);
  const chunk = { anchor: null, changes: [{ kind: "remove", text: "a" }], isAtEnd: false };

  it.each([
    ["without a marker", ["-a"], [chunk]],
    ["with a bare marker", ["@@", "-a"], [chunk]],
    ["with a marker and blanks", ["@@ \t ", "-a"], [chunk]],
    ["with an anchor", ["@@ def f():", "-a"], [{ ...chunk, anchor: "def f():" }]],
    ["with an indented anchor", ["@@   x  ", "-a"], [{ ...chunk, anchor: "  x" }]],
    ["with an end", ["-a", "*** End of File  "], [{ ...chunk, isAtEnd: true }]],
    [
      "with blank lines after the end",
      ["-a", "*** End of File", "", " ", "@@", "-a"],
      [{ ...chunk, isAtEnd: true }, chunk],
    ],
    ["with an end that says nothing", ["*** End of File", "@@", "-a"], [chunk]],
    [
      "with an empty line for a context line",
      ["", "@@", "-a"],
      [{ ...chunk, changes: [{ kind: "context", text: "" }] }, chunk],
    ],
    [
      "with headers that are context because they are indented",
      [" *** Add File: g", " @@"],
      [
        {
          anchor: null,
          changes: [
            { kind: "context", text: "*** Add File: g" },
            { kind: "context", text: "@@" },
          ],
          isAtEnd: false,
        },
      ],
    ],
  ])("has chunks %s", (_, lines, chunks) => {
    expect(hunksOf(update(...lines))).toEqual([{ kind: "update", path: "f", moveTo: null, chunks }]);
  });

  it.each([
    [["*** Move to: g", "-a"], "g"],
    [["*** Move to:  g  ", "-a"], " g"],
    [["*** End of File", "*** Move to: g", "-a"], "g"],
  ])("with %j moves to %j", (lines, moveTo) => {
    expect(hunksOf(update(...lines))).toEqual([{ kind: "update", path: "f", moveTo, chunks: [chunk] }]);
  });

  it.each([
    ["no chunk", update(), 2, "Update file hunk for path 'f' is empty"],
    ["only a move", update("*** Move to: g"), 2, "Update file hunk for path 'f' is empty"],
    ["only an end", update("*** End of File"), 2, "Update file hunk for path 'f' is empty"],
    ["no chunk before the next hunk", update(...addF), 2, "Update file hunk for path 'f' is empty"],
    ["an empty chunk", update("@@"), 4, noLines],
    ["an empty chunk with an end", update("@@", "*** End of File"), 4, noLines],
    ["an empty second chunk", update("-a", "@@"), 5, noLines],
    [
      "an empty chunk before the next hunk",
      update("@@", "*** Add File: g  "),
      4,
      unexpected("*** Add File: g"),
    ],
    ["two markers in a row", update("@@ a", "@@ b", "-c"), 4, unexpected("@@ b")],
    ["a marker without a blank", update("@@a", "-c"), 3, unexpected("@@a")],
    ["a line that starts with a tab", update("@@", "\tb"), 4, unexpected("\tb")],
    ["a line that starts with a star", update("@@", "* a"), 4, unexpected("* a")],
    ["a second move", update("*** Move to: g", "*** Move to: h", "-a"), 4, unexpected("*** Move to: h")],
    ["a move without a name", update("*** Move to: ", "-a"), 3, unexpected("*** Move to: ")],
    ["a move after a chunk", update("-a", "*** Move to: g"), 4, expectedMarker("*** Move to: g")],
    ["a stray line after a chunk", update("-a", "hello"), 4, expectedMarker("hello")],
    ["a change after an end", update("-a", "*** End of File", "-b"), 5, expectedMarker("-b")],
    [
      "two ends in a row",
      update("-a", "*** End of File", "*** End of File"),
      5,
      expectedMarker("*** End of File"),
    ],
    ["a beginning inside", update("-a", "*** Begin Patch"), 4, expectedMarker("*** Begin Patch")],
  ])("is refused with %s", (_, text, line, reason) => {
    expect(reasonOf(text)).toBe(`invalid hunk at line ${line}, ${reason}`);
  });
});

describe("a printed patch", () => {
  it("is read back as it was", () => {
    fc.assert(
      fc.property(patch, (original) => {
        expect(parsePatch(printPatch(original))).toEqual({ kind: "patch", patch: original });
      }),
      { numRuns: 300 },
    );
  });

  it("means what the text meant that it was parsed from", () => {
    fc.assert(
      fc.property(mutatedPatch, (text) => {
        const parsed = parsePatch(text);
        if (parsed.kind === "patch") expect(parsePatch(printPatch(parsed.patch))).toEqual(parsed);
      }),
      { numRuns: 500 },
    );
  });
});
