import fc from "fast-check";
import type { Change, Chunk, Hunk } from "../../../../src/tools/patch/patch-format.js";

/** The lines between `*** Begin Patch` and `*** End Patch`, as a patch. */
export function patchOf(...lines: string[]): string {
  return ["*** Begin Patch", ...lines, "*** End Patch"].join("\n");
}

/** Few different lines, so that they repeat, and all that is hard to match. */
export const line = fc.constantFrom(
  ..."|a|b|  a|a  |\tb|“q”|it’s|it's|a–b|a-b|* star|@@|+plus|-minus|*** End of File|} |{|日本|e\u0301|\u00a0|\u0085n|\ufeffbom|😀".split(
    "|",
  ),
);

export const lines = fc.array(line, { maxLength: 12 });

/** Text that no parser changes at its ends. */
const trimmed = fc
  .string({ unit: fc.constantFrom(..."ab é😀\"'%$\\/.-"), minLength: 1 })
  .filter((text) => /^\S(?:.*\S)?$/u.test(text));

const change: fc.Arbitrary<Change> = fc.record({
  kind: fc.constantFrom("context" as const, "add" as const, "remove" as const),
  text: line,
});

const chunk: fc.Arbitrary<Chunk> = fc.record({
  anchor: fc.option(trimmed),
  changes: fc.array(change, { minLength: 1, maxLength: 5 }),
  isAtEnd: fc.boolean(),
});

const hunk: fc.Arbitrary<Hunk> = fc.oneof(
  fc.record({ kind: fc.constant("add" as const), path: trimmed, lines }),
  fc.record({ kind: fc.constant("delete" as const), path: trimmed }),
  fc.record({
    kind: fc.constant("update" as const),
    path: trimmed,
    moveTo: fc.option(trimmed),
    chunks: fc.array(chunk, { minLength: 1, maxLength: 3 }),
  }),
);

export const hunks = fc.array(hunk, { maxLength: 4 });

const anyPatchLine = fc.oneof(
  line.map((text) => ` ${text}`),
  line.map((text) => `+${text}`),
  line.map((text) => `-${text}`),
  line,
  fc.constantFrom(
    "@@",
    "@@  ",
    "@@ a",
    "*** Add File: new",
    "  *** Add File: new  ",
    "*** Delete File: a.txt",
    "*** Update File: a.txt",
    "*** Move to: b.txt",
    "*** End of File",
    "*** Begin Patch",
    "*** End Patch",
    "  *** End Patch",
    "*** Environment ID: x",
    "*** Update File: ../outside",
    "*** Add File: /etc/outside",
    "<<EOF",
    "EOF",
    "--- a/a.txt",
    "+++ b/a.txt",
    "@@ -1,2 +1,2 @@",
    "diff --git a/a.txt b/a.txt",
    "\\ No newline at end of file",
  ),
);

/** Something like a patch: most are wrong somewhere. */
export const mutatedPatch = fc
  .tuple(fc.array(anyPatchLine, { maxLength: 12 }), fc.constantFrom("\n", "\r\n"), fc.nat(3))
  .map(([body, newline, kind]) => {
    const text = ["*** Begin Patch", "*** Update File: a.txt", ...body, "*** End Patch"].join(newline);
    if (kind === 0) return text.slice(0, Math.floor(text.length / 2));
    return kind === 1 ? body.join(newline) : text;
  });

/** A file's text: lines that end one way, the last perhaps with nothing. */
export const fileText = fc
  .tuple(lines, fc.constantFrom("\n", "\r\n"), fc.boolean())
  .map(([content, ending, isEnded]) => content.join(ending) + (isEnded && content.length > 0 ? ending : ""));
