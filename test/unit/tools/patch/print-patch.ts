import {
  ADD,
  ANCHOR,
  BEGIN,
  type Change,
  type Chunk,
  DELETE,
  END,
  END_OF_FILE,
  type Hunk,
  MOVE,
  UPDATE,
} from "../../../../src/tools/patch/patch-format.js";

/** A patch of these hunks, which parses to the same ones. No final newline. */
export function printPatch(hunks: readonly Hunk[]): string {
  return [BEGIN, ...hunks.flatMap(printHunk), END].join("\n");
}

function printHunk(hunk: Hunk): string[] {
  switch (hunk.kind) {
    case "add":
      return [`${ADD}${hunk.path}`, ...hunk.lines.map((line) => `+${line}`)];
    case "delete":
      return [`${DELETE}${hunk.path}`];
    case "update":
      return [
        `${UPDATE}${hunk.path}`,
        ...(hunk.moveTo === null ? [] : [`${MOVE}${hunk.moveTo}`]),
        ...hunk.chunks.flatMap(printChunk),
      ];
  }
}

function printChunk({ anchor, changes, isAtEnd }: Chunk): string[] {
  return [
    anchor === null ? ANCHOR : `${ANCHOR} ${anchor}`,
    ...changes.map(({ kind, text }) => `${signs[kind]}${text}`),
    ...(isAtEnd ? [END_OF_FILE] : []),
  ];
}

const signs: Record<Change["kind"], string> = { context: " ", add: "+", remove: "-" };
