import { formatPatch, OMIT_HEADERS, type StructuredPatchHunk, structuredPatch } from "diff";
import { decodeUtf8 } from "../../../lib/utf8.js";
import { binaryPatch } from "./binary-patch.js";
import { gitName } from "./git-names.js";

/** A file or a symbolic link before or after a change. */
export interface PatchSide {
  /** The mode as git writes it: "100644", "100755", or "120000" for a symbolic link, whose content is its target. */
  gitMode: "100644" | "100755" | "120000";
  content: Buffer;
}

export interface PatchedPath {
  /** Relative, as bytes or as text. */
  path: Uint8Array | string;
  /** Null stands for a file that does not exist; one of both must exist. */
  before: PatchSide | null;
  after: PatchSide | null;
}

/** The part of a patch that is about one path. Binary is what has a NUL or is not UTF-8, on either side. */
export interface UnifiedText {
  kind: "text" | "binary";
  text: string;
}

const NOTHING = "/dev/null";
const CONTEXT_LINES = 3;
/** Beyond this many added and removed lines, the search for the shortest difference takes too long. */
const MOST_EDITS = 4_000;

/**
 * One path of a patch in git's format, which `git apply` takes. Very different texts are shown as wholly removed and
 * wholly added. A file that has become a symbolic link, or the other way round, is a deletion and an addition, as git
 * writes it. With `binary: "named"`, for people and models, binary contents are left out.
 */
export function unifiedText(
  { path, before, after }: PatchedPath,
  { binary = "whole" }: { binary?: "whole" | "named" } = {},
): UnifiedText {
  if (before !== null && after !== null && isLink(before) !== isLink(after)) {
    const parts = [
      unifiedText({ path, before, after: null }, { binary }),
      unifiedText({ path, before: null, after }, { binary }),
    ];
    const kind = parts.some((part) => part.kind === "binary") ? "binary" : "text";
    return { kind, text: parts.map(({ text }) => text).join("") };
  }
  const [from, to] = [gitName("a/", path), gitName("b/", path)];
  const head = `diff --git ${from} ${to}\n${modeLines(before, after)}`;
  const [old, current] = [textOf(before), textOf(after)];
  if (old === null || current === null) {
    const body =
      binary === "whole"
        ? binaryPatch(before?.content ?? null, after?.content ?? null)
        : `Binary files ${before ? from : NOTHING} and ${after ? to : NOTHING} differ\n`;
    return { kind: "binary", text: head + body };
  }
  const hunks = hunksOf(old, current);
  if (hunks.length === 0) return { kind: "text", text: head };
  const names = `--- ${fileName(from, before)}\n+++ ${fileName(to, after)}\n`;
  const omitted = { oldFileName: "", newFileName: "", oldHeader: undefined, newHeader: undefined };
  return { kind: "text", text: head + names + formatPatch({ ...omitted, hunks }, OMIT_HEADERS) };
}

function isLink({ gitMode }: PatchSide): boolean {
  return gitMode === "120000";
}

function modeLines(before: PatchSide | null, after: PatchSide | null): string {
  if (before === null) return `new file mode ${after?.gitMode}\n`;
  if (after === null) return `deleted file mode ${before.gitMode}\n`;
  return before.gitMode === after.gitMode ? "" : `old mode ${before.gitMode}\nnew mode ${after.gitMode}\n`;
}

/** A tab ends a name that has blanks in it, as git writes it for other programs. */
function fileName(name: string, side: PatchSide | null): string {
  if (side === null) return NOTHING;
  return name.includes(" ") ? `${name}\t` : name;
}

/** Null for a content that is not text. */
function textOf(side: PatchSide | null): string | null {
  if (side === null) return "";
  if (side.content.includes(0)) return null;
  const decoded = decodeUtf8(side.content);
  return decoded.kind === "text" ? decoded.text : null;
}

function hunksOf(before: string, after: string): StructuredPatchHunk[] {
  const options = { context: CONTEXT_LINES, maxEditLength: MOST_EDITS };
  const found = structuredPatch("", "", before, after, undefined, undefined, options);
  if (found !== undefined) return found.hunks;
  // A deletion and an addition, which need no search for what is the same.
  const [removal, addition] = [
    structuredPatch("", "", before, "").hunks,
    structuredPatch("", "", "", after).hunks,
  ];
  const [removed, added] = [removal[0], addition[0]];
  if (removed === undefined || added === undefined) return [...removal, ...addition];
  return [
    {
      oldStart: removed.oldStart,
      oldLines: removed.oldLines,
      newStart: added.newStart,
      newLines: added.newLines,
      lines: [...removed.lines, ...added.lines],
    },
  ];
}
